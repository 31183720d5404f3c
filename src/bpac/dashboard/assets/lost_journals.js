// Journals that lost acknowledged entries: a warning above every view, which can be folded but not removed.

import { element, icon, reconcile, setAttribute, setText } from "./dom.js";
import { plural } from "./numbers.js";
import { placeOf } from "./overview.js";

const FOLDED = "bpac-folded-losses";

export class LostJournals {
  constructor() {
    this.known = "";
    this.title = element("span");
    this.list = element("ul");
    this.more = element("p");
    this.cost = element("p");
    this.remedy = element("span");
    const summary = element("summary", {}, icon("broken"), this.title);
    const remedy = element("p", {}, element("b", {}, "What to do: "), this.remedy);
    this.details = element("details", {}, summary, this.list, this.more, this.cost, remedy);
    this.details.addEventListener("toggle", () => fold(this.details.open ? "" : this.known));
    this.node = element(
      "section",
      { class: "panel notice lost", "aria-label": "Lost journals", hidden: true },
      this.details,
    );
  }

  update({ lost_journals: lost }) {
    setAttribute(this.node, "hidden", !lost);
    if (!lost) return;
    const known = lost.journals.map(({ head }) => head).join(" ");
    // What was folded stays so until something else is lost.
    if (known !== this.known) this.details.open = known !== folded();
    this.known = known;
    setText(this.title, `${plural(lost.count, "journal")} lost entries that had been acknowledged`);
    reconcile(
      this.list,
      lost.journals,
      ({ game, head }) => `${game} ${head}`,
      () => element("li"),
      (item, journal) => setText(item, sentence(journal)),
    );
    const left = lost.count - lost.journals.length;
    setAttribute(this.more, "hidden", left === 0);
    setText(this.more, `${left} more: bpac status lists all of them.`);
    setText(this.cost, lost.cost);
    setText(this.remedy, lost.remedy);
  }
}

function sentence(journal) {
  const place = journal.route === null ? "Unknown route" : placeOf(journal);
  return `${place}: ${journal.text}; ${journal.now}.`;
}

// A browser that keeps nothing shows the warning unfolded with every visit.
function folded() {
  try {
    return localStorage.getItem(FOLDED) ?? "";
  } catch {
    return "";
  }
}

function fold(known) {
  try {
    localStorage.setItem(FOLDED, known);
  } catch {
    // It stays folded as long as the page.
  }
}
