// Is it safe? The verdict in words, first and large, and the served loss beside its limit.

import { element, field, icon, setAttribute, setField, setText } from "./dom.js";
import { atMost, percent, plural, unbroken } from "./numbers.js";

export const LEVELS = { safe: "Safe", warming: "Warming up", watch: "Watch", broken: "Broken" };

// The word of a level with its picture.
export function levelPill(level) {
  return element("span", { class: `pill level-${level}`, "data-level": level }, icon(level), LEVELS[level] ?? level);
}

// What a verdict says beside its level's word, where that word stands already.
export function withoutLevel({ level, text }) {
  const word = `${LEVELS[level]}: `;
  return text.startsWith(word) ? text[word.length].toUpperCase() + text.slice(word.length + 1) : text;
}

// A bar from 0 to a half more than the limit; the served loss lies somewhere in its filled part.
class LimitBar {
  constructor() {
    this.fill = element("span", { class: "bar-fill" });
    this.upper = field("certificate.average_upper");
    this.limit = field("epsilon");
    const track = element("span", { class: "bar-track" }, this.fill, element("span", { class: "bar-limit" }));
    const names = element(
      "span",
      { class: "bar-names" },
      element("span", {}, "served loss at most ", this.upper),
      element("span", { class: "bar-limit-name" }, "limit ", this.limit),
    );
    this.node = element("div", { class: "limit-bar" }, names, track);
  }

  update(game) {
    const { average_upper: upper, lower, rounds } = game.certificate;
    const place = (value) => Math.min(100, (100 * value) / (1.5 * game.epsilon));
    const from = rounds ? lower / rounds : 0;
    // What lies beyond the end of the bar is still seen at its end.
    const left = Math.min(97, place(from));
    this.fill.style.setProperty("left", `${left.toFixed(2)}%`);
    this.fill.style.setProperty("width", `${Math.max(0, place(upper) - left).toFixed(2)}%`);
    setAttribute(this.node, "data-over", from > game.epsilon ? "certainly" : upper > game.epsilon ? "perhaps" : null);
    setField(this.upper, upper, atMost(upper));
    setField(this.limit, game.epsilon, percent(game.epsilon));
  }
}

export class Verdict {
  constructor() {
    this.level = "";
    this.picture = element("span", { class: "verdict-icon" });
    this.text = element("h2", { "data-field": "verdict" });
    this.detail = element("p", { class: "detail" });
    this.needed = field("clean_rounds_needed");
    this.warming = element(
      "p",
      { class: "warming" },
      "Nothing is wrong. A threshold opens when the bets on it have won enough; that takes at least ",
      this.needed,
      " without a loss.",
    );
    this.bar = new LimitBar();
    this.basis = element("p", { class: "promise" });
    this.served = field("served_loss");
    this.truth = element("p", { class: "truth" }, "Really served: ", this.served, ". Only a replay can know.");
    const words = element("div", { class: "verdict-words" }, this.text, this.detail, this.warming);
    const proof = element("div", { class: "verdict-proof" }, this.bar.node, this.truth, this.basis);
    this.node = element("section", { class: "panel verdict", "aria-label": "Verdict" }, this.picture, words, proof);
  }

  update(game) {
    const { level, text, detail } = game.verdict;
    if (level !== this.level) {
      this.picture.replaceChildren(icon(level));
      this.level = level;
      setAttribute(this.node, "data-level", level);
    }
    setText(this.text, unbroken(text));
    setText(this.detail, unbroken(detail));
    const needed = game.clean_rounds_needed;
    setAttribute(this.warming, "hidden", needed === null);
    setField(this.needed, needed, needed === null ? "" : plural(needed, "more round"));
    this.bar.update(game);
    setAttribute(this.truth, "hidden", game.served_loss === undefined);
    setField(this.served, game.served_loss, percent(game.served_loss));
    const rounds = plural(game.certificate.rounds, "round");
    const sure = `with ${percent(game.certificate.confidence)} confidence, whenever you look`;
    setText(
      this.basis,
      `Loss of the drafts that were served, per round, over ${rounds}. Each end of the filled part holds ${sure}.`,
    );
  }
}
