// The page of one game: verdict, figures, charts, events and decisions.

import { Chart } from "../charts/chart.js";
import { uncertaintySpec, wealthSpec } from "../charts/score_charts.js";
import { certificateSpec, ratesSpec, thresholdSpec } from "../charts/time_charts.js";
import { whatIfSpec } from "../charts/what_if.js";
import { element, escapeInvisible, setAttribute, setText } from "../dom.js";
import { percent } from "../numbers.js";
import { AxisChoice } from "../panels/axis_choice.js";
import { CascadePanel } from "../panels/cascade.js";
import { DecisionList } from "../panels/decision_list.js";
import { EventsPanel } from "../panels/events.js";
import { FiguresPanel } from "../panels/figures.js";
import { LatencyPanel } from "../panels/latency.js";
import { SwitchPanel } from "../panels/switch.js";
import { VerdictPanel } from "../panels/verdict.js";

/** @import { AxisName } from "../charts/series_axis.js" */
/** @import { ChartSpec } from "../charts/specs.js" */
/** @import { DashboardDocument, DataSource, Game } from "../types.js" */

export class GameView {
  /**
   * @param {DataSource} source
   * @param {(filters: Record<string, string>) => void} onFilters called with the filters of the decisions when they change
   */
  constructor(source, onFilters) {
    this.state = "";
    this.back = element("a", { class: "back", href: "#" }, "All routes");
    this.route = element("span");
    this.segment = element("bdi", { class: "segment-name" });
    this.heading = element("h1", { tabindex: "-1" }, this.route, " ", this.segment);
    this.settings = element("p", { class: "terms" });
    this.verdict = new VerdictPanel();
    this.switch = new SwitchPanel();
    this.figures = new FiguresPanel();
    /** @type {Game | null} the game that is shown */
    this.game = null;
    this.axis = new AxisChoice(() => this.drawCharts());
    /** @type {[Chart, (game: Game, axis: AxisName) => ChartSpec][]} */
    this.charts = [
      [new Chart("threshold", "Threshold over time"), thresholdSpec],
      [new Chart("wealth", "Why the threshold is there: betting wealth"), wealthSpec],
      [new Chart("certificate", "Average loss and its limit"), certificateSpec],
      [new Chart("rates", "Expert calls and tokens"), ratesSpec],
      [new Chart("uncertainty", "Uncertainty of the drafts"), uncertaintySpec],
      [new Chart("what-if", "What if the limit were different", { estimate: true }), whatIfSpec],
    ];
    this.cascade = new CascadePanel();
    this.latency = new LatencyPanel();
    this.events = new EventsPanel();
    this.decisions = new DecisionList(source, onFilters);
    const grid = element(
      "section",
      { class: "charts", "aria-label": "Charts" },
      element("h2", { class: "hidden-text" }, "Charts"),
      this.axis.node,
      ...this.charts.map(([chart]) => chart.node),
      this.cascade.node,
      this.latency.node,
      this.events.node,
    );
    const title = element("div", { class: "view-title" }, this.back, this.heading, this.settings);
    const parts = [title, this.switch.node, this.verdict.node, this.figures.node, grid, this.decisions.node];
    this.node = element("div", { class: "view game-view" }, ...parts);
  }

  /**
   * @param {Game} game
   * @param {DashboardDocument} data
   * @param {URLSearchParams} filters of the decisions
   */
  update(game, data, filters) {
    setAttribute(this.back, "hidden", data.games.length < 2);
    setText(this.route, escapeInvisible(game.route));
    setText(this.segment, escapeInvisible(game.segment));
    setAttribute(this.segment, "hidden", !game.segment);
    setText(this.settings, settingsText(game));
    setAttribute(this.node, "data-game", game.game);
    this.verdict.update(game);
    this.switch.update(game);
    this.figures.update(game);
    this.game = game;
    this.drawCharts();
    this.cascade.update(game);
    this.latency.update(game, data.live);
    this.events.update(game);
    this.decisions.follow(game.game, game.unit, filters);
    this.axis.nameRounds(game.unit);
    const state = JSON.stringify([game.game, game.steps, game.owed, game.forfeits, game.certificate]);
    if (state !== this.state) this.decisions.gameChanged();
    this.state = state;
  }

  drawCharts() {
    const { game } = this;
    if (game === null) return;
    for (const [chart, specOf] of this.charts) chart.update(specOf(game, this.axis.axis));
  }
}

/** @param {Game} game */
function settingsText(game) {
  const parts = [`policy ${game.policy}${game.memory ? ` (memory ${game.memory})` : ""}`];
  if (game.about !== null)
    parts.push(`decides about drafts of its callers${game.about ? `: ${escapeInvisible(game.about)}` : ""}`);
  if (game.score) parts.push(`score ${game.score}`);
  if (game.scores.length === 1) parts.push("learned score: none yet, it needs more audits");
  for (const { score, share, rounds, since_step, accepted, in_force, estimated_gain, shared, retired } of game.scores) {
    if (rounds === null) continue;
    if (share === 0) {
      const gain = percent(estimated_gain ?? 0);
      parts.push(
        `learned score ${score}: none, because a model of ${rounds} audits after round ${since_step} would accept ` +
          `only ${gain} more ${game.unit}s; its share of α went back to the score of the route`,
      );
      continue;
    }
    const inUse = `accepts ${percent(accepted)} of the latest ${game.unit}s, ${in_force ? "in force" : "not in force"}`;
    const use = retired ? "retired, because the score in force is at least as good" : inUse;
    parts.push(
      `learned score ${score}: fitted to ${rounds} audits${shared ? " of all segments" : ""} after round ${since_step}, ${use}`,
    );
  }
  if (game.loss) parts.push(`loss ${game.loss}`);
  if (game.unit === "episode") parts.push("a round is an episode: later requests of a session follow its first one");
  parts.push(`explore ${game.explore}`);
  parts.push(`ε ${game.epsilon}, α ${game.alpha}`);
  return parts.join(" · ");
}
