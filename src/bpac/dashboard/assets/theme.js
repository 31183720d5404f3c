// Runs before the first paint: the theme chosen in this browser. A page opened from a disk may have no storage.
try {
  document.documentElement.dataset.theme = localStorage.getItem("bpac-theme") ?? "auto";
} catch {
  document.documentElement.dataset.theme = "auto";
}
