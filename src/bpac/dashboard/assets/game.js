// One game: verdict, figures, charts, what happened and the decisions.

import { Chart } from "./chart.js";
import { DecisionList } from "./decision_list.js";
import { element, setAttribute, setText, visible } from "./dom.js";
import { Events } from "./events.js";
import { Figures } from "./figures.js";
import { Latency } from "./latency.js";
import { uncertaintySpec, wealthSpec } from "./other_charts.js";
import { certificateSpec, ratesSpec, thresholdSpec } from "./time_charts.js";
import { Verdict } from "./verdict.js";
import { whatIfSpec } from "./what_if.js";

export class GameView {
  constructor(source, onFilters) {
    this.seen = "";
    this.back = element("a", { class: "back", href: "#" }, "All routes");
    this.route = element("span");
    this.segment = element("bdi", { class: "segment-name" });
    this.heading = element("h1", { tabindex: "-1" }, this.route, " ", this.segment);
    this.terms = element("p", { class: "terms" });
    this.verdict = new Verdict();
    this.figures = new Figures();
    this.charts = [
      [new Chart("threshold", "Threshold over time"), thresholdSpec],
      [new Chart("wealth", "Why the threshold is there: wealth of the bets"), wealthSpec],
      [new Chart("certificate", "Served loss against the limit"), certificateSpec],
      [new Chart("rates", "Expert calls and tokens"), ratesSpec],
      [new Chart("uncertainty", "Uncertainty of the drafts"), uncertaintySpec],
      [new Chart("what-if", "What if: another limit", { estimate: true }), whatIfSpec],
    ];
    this.latency = new Latency();
    this.events = new Events();
    this.decisions = new DecisionList(source, onFilters);
    const heading = element("h2", { class: "hidden-text" }, "Charts");
    const drawn = this.charts.map(([chart]) => chart.node);
    const grid = element(
      "section",
      { class: "charts", "aria-label": "Charts" },
      heading,
      ...drawn,
      this.latency.node,
      this.events.node,
    );
    const title = element("div", { class: "view-title" }, this.back, this.heading, this.terms);
    this.node = element(
      "div",
      { class: "view game-view" },
      title,
      this.verdict.node,
      this.figures.node,
      grid,
      this.decisions.node,
    );
  }

  update(game, data, filters) {
    setAttribute(this.back, "hidden", data.games.length < 2);
    setText(this.route, visible(game.route));
    setText(this.segment, visible(game.segment));
    setAttribute(this.segment, "hidden", !game.segment);
    setText(this.terms, termsOf(game));
    setAttribute(this.node, "data-game", game.game);
    this.verdict.update(game);
    this.figures.update(game);
    for (const [chart, specOf] of this.charts) chart.update(specOf(game));
    this.latency.update({ ...game, live: data.live });
    this.events.update(game);
    this.decisions.show(game.game, filters);
    const seen = JSON.stringify([game.game, game.steps, game.owed, game.forfeits, game.certificate]);
    if (seen !== this.seen) this.decisions.moved();
    this.seen = seen;
  }
}

function termsOf(game) {
  const parts = [`policy ${game.policy}${game.memory ? ` (${game.memory})` : ""}`];
  if (game.score) parts.push(`score ${game.score}`);
  if (game.loss) parts.push(`loss ${game.loss}`);
  parts.push(game.explore === "shadow" ? "audits in the shadow" : "audits served");
  parts.push(`ε ${game.epsilon}, α ${game.alpha}`);
  return parts.join(" · ");
}
