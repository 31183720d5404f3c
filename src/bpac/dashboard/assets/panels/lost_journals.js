// A warning about journals that lost acknowledged entries. It stands above every view and can be folded, not removed.

import { element, icon, reconcile, setAttribute, setText } from "../dom.js";
import { plural } from "../numbers.js";
import { gameName } from "./game_name.js";

/** @import { DashboardDocument, LostJournal } from "../types.js" */

const STORAGE_KEY = "bpac-folded-losses";

export class LostJournalsNotice {
  constructor() {
    this.shown = "";
    this.title = element("span");
    this.list = element("ul");
    this.more = element("p");
    this.cost = element("p");
    this.remedy = element("span");
    const summary = element("summary", {}, icon("broken"), this.title);
    const remedy = element("p", {}, element("b", {}, "What to do: "), this.remedy);
    this.details = element("details", {}, summary, this.list, this.more, this.cost, remedy);
    this.details.addEventListener("toggle", () => rememberFolded(this.details.open ? "" : this.shown));
    const attributes = { class: "panel notice lost", "aria-label": "Lost journals", hidden: true };
    this.node = element("section", attributes, this.details);
  }

  /** @param {DashboardDocument} data */
  update({ lost_journals: lost }) {
    setAttribute(this.node, "hidden", !lost);
    if (!lost) return;
    const shown = lost.journals.map(({ head }) => head).join(" ");
    // A warning that was folded unfolds again when another journal is lost.
    if (shown !== this.shown) this.details.open = shown !== rememberedFolded();
    this.shown = shown;
    setText(this.title, `${plural(lost.count, "journal")} lost acknowledged entries`);
    reconcile(
      this.list,
      lost.journals,
      ({ game, head }) => `${game} ${head}`,
      () => element("li"),
      (item, journal) => setText(item, sentence(journal)),
    );
    const left = lost.count - lost.journals.length;
    setAttribute(this.more, "hidden", left === 0);
    setText(this.more, `${left} more: the command bpac status lists all of them.`);
    setText(this.cost, lost.cost);
    setText(this.remedy, lost.remedy);
  }
}

/** @param {LostJournal} journal */
function sentence({ route, segment, text, now }) {
  return `${route === null ? "Unknown route" : gameName({ route, segment })}: ${text}; ${now}.`;
}

// A browser may have no storage: the warning is then unfolded with every visit.
function rememberedFolded() {
  try {
    return localStorage.getItem(STORAGE_KEY) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} shown */
function rememberFolded(shown) {
  try {
    localStorage.setItem(STORAGE_KEY, shown);
  } catch {
    // Folded until the page is reloaded.
  }
}
