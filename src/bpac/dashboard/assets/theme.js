// Before anything is painted: the theme that was chosen here, if any. A page from a disk may have no storage.
try {
  document.documentElement.dataset.theme = localStorage.getItem("bpac-theme") ?? "auto";
} catch {
  document.documentElement.dataset.theme = "auto";
}
