// Whether the new model of a game may replace the old one, for games that ask for it.

import { element, field, icon, setAttribute, setField, setText } from "../dom.js";
import { integer, keepUnits, percent, percentRoundedDown, percentRoundedUp } from "../numbers.js";

/** @import { Game, Level, SwitchAnswer } from "../types.js" */

/** @type {Record<SwitchAnswer, Level>} */
const SWITCH_LEVELS = { yes: "safe", not_yet: "warming", no: "broken" };

/** @type {Record<SwitchAnswer, string>} */
const ANSWERS = { yes: "Yes", not_yet: "Not yet", no: "No" };

export class SwitchPanel {
  constructor() {
    this.answer = "";
    this.picture = element("span", { class: "verdict-icon" });
    this.text = element("h2");
    this.least = field("switch.at_least");
    this.most = field("switch.at_most");
    this.estimate = field("switch.estimate");
    this.allowed = field("switch.allowed");
    this.audits = field("switch.audits");
    this.unknown = field("switch.unknown");
    this.sentence = element("p", { class: "warming", "data-field": "switch.text" });
    this.others = element("p", { class: "detail" });
    const facts = element(
      "p",
      { class: "detail" },
      "Mean loss of the new model: between ",
      this.least,
      " and ",
      this.most,
      ", estimated ",
      this.estimate,
      "; allowed ",
      this.allowed,
      ". Audits with a verdict: ",
      this.audits,
      ", without: ",
      this.unknown,
      ".",
    );
    const words = element("div", { class: "verdict-words" }, this.text, this.sentence, facts, this.others);
    this.node = element(
      "section",
      { class: "panel verdict", "aria-label": "May the new model replace the old one?", "data-panel": "switch" },
      this.picture,
      words,
    );
  }

  /** @param {Game} game */
  update({ switch: found, unscored }) {
    setAttribute(this.node, "hidden", !found);
    if (!found) return;
    if (found.answer !== this.answer) {
      const level = SWITCH_LEVELS[found.answer];
      this.picture.replaceChildren(icon(level));
      setAttribute(this.node, "data-level", level);
      this.answer = found.answer;
    }
    setText(this.text, `May the new model replace the old one? ${ANSWERS[found.answer]}`);
    setText(this.sentence, keepUnits(withoutAnswer(found.text)));
    setField(this.least, found.at_least, percentRoundedDown(found.at_least));
    setField(this.most, found.at_most, percentRoundedUp(found.at_most));
    setField(this.estimate, found.estimate, found.estimate === null ? "–" : percent(found.estimate));
    setField(this.allowed, found.allowed, percent(found.allowed));
    setField(this.audits, found.audits, integer(found.audits));
    setField(this.unknown, found.unknown, integer(found.unknown));
    setAttribute(this.others, "hidden", unscored.requests === 0);
    setText(
      this.others,
      `The new model did not answer ${percent(unscored.share)} of the requests: the verdict is about the others.`,
    );
  }
}

/**
 * The sentence of a verdict without the answer at its start, which the heading has.
 * @param {string} text
 */
function withoutAnswer(text) {
  const sentence = text.slice(text.indexOf(": ") + 2);
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
}
