// The verdict of a game in words, and its average loss beside the limit.

import { element, field, icon, setAttribute, setField, setText } from "../dom.js";
import { integer, keepUnits, percent, percentRoundedUp, plural } from "../numbers.js";

/** @import { Game, Level, VerdictText } from "../types.js" */

/** @type {Record<Level, string>} */
export const LEVEL_NAMES = {
  safe: "Safe",
  warming: "Warming up",
  watch: "Watch",
  stopped: "Not routing",
  broken: "Limit exceeded",
};

/** @type {Level[]} the most urgent first */
export const URGENCY = ["broken", "stopped", "watch", "warming", "safe"];

/**
 * How many games have each level, in words.
 * @param {Partial<Record<Level, number>>[]} counts
 */
export function levelsText(counts) {
  return URGENCY.map((level) => ({ level, count: counts.reduce((sum, one) => sum + (one[level] ?? 0), 0) }))
    .filter(({ count }) => count > 0)
    .map(({ level, count }) => `${integer(count)} ${LEVEL_NAMES[level].toLowerCase()}`)
    .join(", ");
}

/**
 * The name of a level with its icon.
 * @param {Level} level
 */
export function levelPill(level) {
  return element("span", { class: `pill level-${level}`, "data-level": level }, icon(level), LEVEL_NAMES[level]);
}

/**
 * The text of a verdict without the name of its level, for where that name stands beside it.
 * @param {VerdictText} verdict
 */
export function withoutLevel({ level, text }) {
  const prefix = `${LEVEL_NAMES[level]}: `;
  return text.startsWith(prefix) ? text[prefix.length].toUpperCase() + text.slice(prefix.length + 1) : text;
}

// A bar from 0 to 1.5 times the limit; the actual average loss lies in its filled part.
class LimitBar {
  constructor() {
    this.fill = element("span", { class: "bar-fill" });
    this.upper = field("certificate.average_upper");
    this.limit = field("epsilon");
    const track = element("span", { class: "bar-track" }, this.fill, element("span", { class: "bar-limit" }));
    const names = element(
      "span",
      { class: "bar-names" },
      element("span", {}, "average loss at most ", this.upper),
      element("span", { class: "bar-limit-name" }, "limit ", this.limit),
    );
    this.node = element("div", { class: "limit-bar" }, names, track);
  }

  /** @param {Game} game */
  update(game) {
    const { average_upper: upper, lower, rounds } = game.certificate;
    const position = (/** @type {number} */ value) => Math.min(100, (100 * value) / (1.5 * game.epsilon));
    const from = rounds ? lower / rounds : 0;
    // A loss beyond the end of the bar is still shown, at its end.
    const left = Math.min(97, position(from));
    this.fill.style.setProperty("left", `${left.toFixed(2)}%`);
    this.fill.style.setProperty("width", `${Math.max(0, position(upper) - left).toFixed(2)}%`);
    setAttribute(this.node, "data-over", from > game.epsilon ? "certainly" : upper > game.epsilon ? "perhaps" : null);
    setField(this.upper, upper, percentRoundedUp(upper));
    setField(this.limit, game.epsilon, percent(game.epsilon));
  }
}

export class VerdictPanel {
  constructor() {
    /** @type {Level | null} */
    this.level = null;
    this.picture = element("span", { class: "verdict-icon" });
    this.text = element("h2", { "data-field": "verdict" });
    this.detail = element("p", { class: "detail" });
    this.needed = field("clean_rounds_needed");
    this.everyUnit = element("span");
    this.warming = element(
      "p",
      { class: "warming" },
      "Drafts are kept once enough of them have been checked, which takes at least ",
      this.needed,
      " without a loss. Until then the expert answers every ",
      this.everyUnit,
      ".",
    );
    this.bar = new LimitBar();
    this.basis = element("p", { class: "promise" });
    this.served = field("served_loss");
    this.actual = element("p", { class: "truth" }, "Actual average loss: ", this.served, " (known only in a replay).");
    const words = element("div", { class: "verdict-words" }, this.text, this.detail, this.warming);
    const proof = element("div", { class: "verdict-proof" }, this.bar.node, this.actual, this.basis);
    this.node = element("section", { class: "panel verdict", "aria-label": "Verdict" }, this.picture, words, proof);
  }

  /** @param {Game} game */
  update(game) {
    const { level, text, detail } = game.verdict;
    if (level !== this.level) {
      this.picture.replaceChildren(icon(level));
      this.level = level;
      setAttribute(this.node, "data-level", level);
    }
    setText(this.text, keepUnits(text));
    setText(this.detail, keepUnits(detail));
    const needed = game.clean_rounds_needed;
    // Without scores no number of requests is enough.
    setAttribute(this.warming, "hidden", needed === null || level === "stopped");
    setField(this.needed, needed, needed === null ? "" : plural(needed, `more ${game.unit}`));
    setText(this.everyUnit, game.unit === "episode" ? "new episode" : game.unit);
    this.bar.update(game);
    setAttribute(this.actual, "hidden", game.served_loss === undefined);
    setField(this.served, game.served_loss, percent(game.served_loss));
    const { rounds, confidence } = game.certificate;
    setText(
      this.basis,
      `Average loss per ${game.unit} over ${plural(rounds, game.unit)}: it lies in the filled part of the bar. ` +
        `Each end of that part holds with ${percent(confidence)} confidence at any time.`,
    );
  }
}
