// One decision: what was known, what was decided and why, and what came of it.

import { element, field, setField, setText, shape, visible } from "./dom.js";
import { outcome } from "./decision_list.js";
import { moment, percent, score, tokens, unbroken, whole } from "./numbers.js";

const OPEN = ": its grade is still to come, and it counts as a loss of 1 until then";

export class DecisionView {
  constructor(source) {
    this.source = source;
    this.id = null;
    this.back = element("a", { class: "back", href: "#" }, "Back to the route");
    this.heading = element("h1", { tabindex: "-1" }, "Decision");
    this.body = element("div");
    this.node = element("div", { class: "view decision-view" }, this.back, this.heading, this.body);
  }

  async show(id) {
    const fresh = this.id !== id;
    if (fresh) this.body.replaceChildren(element("p", { class: "empty" }, "Being fetched …"));
    this.id = id;
    let decision;
    try {
      decision = await this.source.decision(id);
    } catch (error) {
      if (this.id === id && (fresh || !error.unreachable)) {
        this.back.href = "#";
        setText(this.heading, "Decision");
        this.body.replaceChildren(
          element("p", { class: "panel empty" }, `This decision cannot be shown: ${error.message}`),
        );
      }
      return;
    }
    if (this.id === id) this.fill(decision);
  }

  fill(decision) {
    const place = visible(decision.segment ? `${decision.route} / ${decision.segment}` : decision.route);
    this.back.href = `#game=${decision.game}`;
    setText(this.back, `Back to ${place}`);
    setText(this.heading, `Round ${whole(decision.step)}`);
    const answered = element(
      "p",
      { class: "decision-answer" },
      `${decision.answered_by === "draft" ? "The draft" : "The expert"} answered.`,
    );
    const why = element("p", { class: "decision-why" }, unbroken(decision.why));
    const told = element("section", { class: "panel" }, answered, why, scalePicture(decision));
    const parts = [told, element("section", { class: "panel" }, element("h2", {}, "Recorded"), recorded(decision))];
    if (decision.texts) parts.push(...texts(decision.texts));
    else
      parts.push(
        element(
          "p",
          { class: "empty" },
          "No texts are kept for this round: bpac keeps both answers only while a loss is awaited from outside.",
        ),
      );
    this.body.replaceChildren(...parts);
  }
}

function recorded(decision) {
  const value = (name, exact, text) => {
    const node = field(name);
    setField(node, exact, text);
    return node;
  };
  const counted = ["draft", "expert", "judge"].filter((who) => typeof decision[`${who}_tokens`] === "number");
  const coin =
    decision.propensity >= 1
      ? "no coin: the expert is always called here"
      : decision.call_expert
        ? "the coin called the expert"
        : "the coin let the draft pass";
  const entries = [
    ["Decision", element("code", {}, decision.id)],
    ["Time", element("span", { class: "number" }, moment(decision.at) || "not recorded")],
    ["Uncertainty of the draft", value("decision.uncertainty", decision.uncertainty, score(decision.uncertainty))],
    ["Threshold in force", value("decision.threshold", decision.threshold, score(decision.threshold))],
    [
      "Probability of calling the expert",
      value("decision.propensity", decision.propensity, percent(decision.propensity)),
    ],
    ["Coin", coin],
    ["Answered by", value("decision.answered_by", decision.answered_by, decision.answered_by)],
    ["Outcome", value("decision.state", decision.state, outcome(decision) + (decision.state === "open" ? OPEN : ""))],
    ...(typeof decision.loss === "number"
      ? [["Loss", value("decision.loss", decision.loss, score(decision.loss))]]
      : []),
    ["Epoch", value("decision.epoch", decision.epoch, whole(decision.epoch))],
    ...counted.map((who) => [
      `Tokens of the ${who}`,
      value(`decision.${who}_tokens`, decision[`${who}_tokens`], tokens(decision[`${who}_tokens`])),
    ]),
  ];
  return element(
    "dl",
    { class: "recorded" },
    ...entries.map(([name, node]) => element("div", {}, element("dt", {}, name), element("dd", {}, node))),
  );
}

function texts(kept) {
  return Object.entries(kept).map(([who, text]) => {
    const name = who === "draft" ? "The draft's answer" : who === "expert" ? "The expert's answer" : who;
    const body = element("pre", { tabindex: "0", "aria-label": name, role: "region" }, text);
    return element("section", { class: "panel" }, element("h2", {}, name), body);
  });
}

// From 0 to 1: where drafts are kept, and where this one lay. Square roots, because scores crowd near 0.
function scalePicture(decision) {
  const place = (value) => 12 + 576 * Math.sqrt(value);
  const [dot, edge] = [place(decision.uncertainty), place(decision.threshold)];
  const anchor = (right) => (right < 90 ? "start" : right > 510 ? "end" : "middle");
  const words = (right, up, text, style) =>
    shape("text", { x: right, y: up, "text-anchor": anchor(right), class: style }, text);
  const parts = [
    shape("line", { x1: 12, x2: 588, y1: 40, y2: 40, class: "place-track" }),
    shape("line", { x1: 12, x2: edge, y1: 40, y2: 40, class: "place-kept" }),
    shape("line", { x1: edge, x2: edge, y1: 28, y2: 52, class: "place-threshold" }),
    ...(edge > 190 ? [words(12, 70, "sure", "place-name edge")] : []),
    ...(edge < 410 ? [words(588, 70, "unsure", "place-name edge")] : []),
    words(edge, 70, `threshold ${score(decision.threshold)}`, "place-name"),
    shape("circle", { cx: dot, cy: 40, r: 8, class: "place-dot" }),
    words(dot, 20, `uncertainty ${score(decision.uncertainty)}`, "place-name strong"),
  ];
  const label = `Uncertainty ${score(decision.uncertainty)}, threshold ${score(decision.threshold)}`;
  return shape("svg", { viewBox: "0 0 600 78", class: "place-large", role: "img", "aria-label": label }, ...parts);
}
