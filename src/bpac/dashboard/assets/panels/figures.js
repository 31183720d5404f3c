// The figures of a game: what it saves, and what it is doing now.

import { recentRates, recentRequests } from "../charts/time_charts.js";
import { element, field, setAttribute, setField, setText } from "../dom.js";
import { integer, percent, plural, score, tokens } from "../numbers.js";
import { scoreInForce } from "../score_in_force.js";
import { MoneyTile, TokensTile } from "./savings.js";
import { Tile, updateCounts } from "./tile.js";

/** @import { Game } from "../types.js" */

export class FiguresPanel {
  constructor() {
    this.tiles = [
      new TokensTile(),
      new MoneyTile(),
      new ExpertCallsTile(),
      new SessionsTile(),
      new ThresholdTile(),
      new AlarmTile(),
      new WaitingTile(),
      new UngradedTile(),
      new UnscoredTile(),
      new RefusedTile(),
    ];
    const heading = element("h2", { class: "hidden-text" }, "Figures");
    const nodes = this.tiles.map((tile) => tile.node);
    this.node = element("section", { class: "tiles", "aria-label": "Figures" }, heading, ...nodes);
  }

  /** @param {Game} game */
  update(game) {
    for (const tile of this.tiles) tile.update(game);
  }
}

class ExpertCallsTile extends Tile {
  constructor() {
    super("Expert call rate", "expert_call_rate");
    this.calls = field("expert_calls");
    this.steps = field("steps");
    this.recent = element("div");
    this.note.append(this.calls, " of ", this.steps, this.recent);
  }

  /** @param {Game} game */
  update({ expert_call_rate: rate, expert_calls: calls, steps, series, unit }) {
    setField(this.value, rate, rate === null ? "–" : percent(rate));
    setField(this.calls, calls, integer(calls));
    setField(this.steps, steps, plural(steps, unit));
    const requests = series && recentRequests(series);
    setText(this.recent, requests ? `${percent(recentRates(series).at(-1))} of the last ${integer(requests)}` : "");
  }
}

// Shown only where sessions are sticky.
class SessionsTile extends Tile {
  constructor() {
    super("Requests that followed", "savings.followed.requests");
    this.open = field("sessions.open");
    this.by = element("div");
    this.spent = element("div");
    this.forgotten = element("div");
    this.note.append("open sessions: ", this.open, this.by, this.spent, this.forgotten);
  }

  /** @param {Game} game */
  update({ unit, sessions, savings }) {
    setAttribute(this.node, "hidden", unit !== "episode");
    const followed = savings?.followed;
    setField(this.value, followed?.requests ?? 0, integer(followed?.requests ?? 0));
    setField(this.open, sessions?.open, integer(sessions?.open ?? 0));
    setText(
      this.by,
      followed
        ? `${integer(followed.by_draft)} by the draft’s model, ${integer(followed.by_expert)} by the expert`
        : "",
    );
    const generated = followed ? followed.draft.completion_tokens + followed.expert.completion_tokens : 0;
    setText(this.spent, followed ? `${tokens(generated)} generated tokens, in none of the other figures` : "");
    setText(this.forgotten, sessions?.forgotten ? `${integer(sessions.forgotten)} sessions forgotten: too many` : "");
  }
}

class ThresholdTile extends Tile {
  constructor() {
    super("Threshold", "threshold");
    this.meaning = element("div");
    this.epoch = field("epoch");
    this.note.append(this.meaning, element("div", {}, "epoch ", this.epoch));
  }

  /** @param {Game} game */
  update(game) {
    const { threshold, epoch } = game;
    setField(this.value, threshold, score(threshold));
    setText(this.meaning, threshold > 0 ? `drafts with a lower ${scoreInForce(game)} are kept` : "no draft is kept");
    setField(this.epoch, epoch, integer(epoch));
  }
}

class AlarmTile extends Tile {
  constructor() {
    super("Drift alarm", "alarm.level");
    this.fill = element("span", { class: "meter-fill" });
    this.mark = element("span", { class: "meter-mark" });
    this.meaning = element("span");
    this.limit = field("alarm.limit");
    const meter = element("span", { class: "meter", "aria-hidden": "true" }, this.fill, this.mark);
    this.note.append(meter, this.meaning, "; at ", this.limit, " the threshold is reset to 0");
  }

  /** @param {Game} game */
  update({ alarm }) {
    setAttribute(this.node, "hidden", !alarm);
    if (!alarm) return;
    const { level, careful, limit } = alarm;
    setField(this.value, level, level < 100 ? level.toPrecision(2) : integer(level));
    setField(this.limit, limit, integer(limit));
    setText(
      this.meaning,
      level < careful
        ? `no sign of drift (below ${integer(careful)})`
        : `from ${integer(careful)} on, more drafts are audited`,
    );
    const share = (/** @type {number} */ value) =>
      `${Math.max(0, Math.min(100, (100 * Math.log(Math.max(1, value))) / Math.log(limit))).toFixed(1)}%`;
    this.fill.style.setProperty("width", share(level));
    this.mark.style.setProperty("left", share(careful));
  }
}

class WaitingTile extends Tile {
  constructor() {
    super("Waiting for a grade", "owed", "the expert was called; each counts as a loss of 1 until it is graded");
  }

  /** @param {Game} game */
  update({ owed }) {
    setField(this.value, owed, integer(owed));
  }
}

class UngradedTile extends Tile {
  constructor() {
    super("Audits that could not be graded", "forfeits");
    this.meaning = element("div");
    this.share = field("forfeit_share");
    this.recent = element("div", {}, this.share, " of the latest audits of accepted drafts");
    this.doubt = element("div", { class: "urgent", "data-field": "doubt" });
    this.causes = element("dl", { class: "facts" });
    this.note.append(this.meaning, this.recent, this.doubt);
    this.append(this.causes);
  }

  /** @param {Game} game */
  update({ forfeits, forfeit_share: share, doubt, alarm, remedies }) {
    const all = Object.values(forfeits).reduce((sum, count) => sum + count, 0);
    setField(this.value, all, integer(all));
    // Without causes there is no list, and it is as narrow as the others.
    this.node.classList.toggle("wide", all > 0);
    setText(this.meaning, all ? "each counts as a loss of 1" : "every audit so far could be graded");
    updateCounts(this.causes, forfeits, "forfeits", remedies);
    setField(this.share, share, percent(share));
    setAttribute(this.recent, "hidden", !alarm || share === 0);
    setAttribute(this.doubt, "hidden", !alarm || share === 0 || (doubt ?? 0) < alarm.careful);
    const audited = alarm && (doubt ?? 0) >= alarm.limit ? "every draft is audited" : "more drafts are audited";
    setField(this.doubt, doubt, `${audited} until audits can be graded again`);
  }
}

class UnscoredTile extends Tile {
  constructor() {
    super("Requests without a score", "unscored.requests");
    this.share = field("unscored.share");
    this.cost = field("unscored_cost");
    this.missed = element("div", {}, "about ", this.cost, " tokens not saved because of them");
    this.reasons = element("dl", { class: "facts" });
    this.note.append(
      this.share,
      " of all requests; the expert answers them, so they save nothing; the other figures do not include them",
      this.missed,
    );
    this.append(this.reasons);
  }

  /** @param {Game} game */
  update({ unscored: { requests, share, reasons }, unscored_cost: cost, remedies }) {
    setAttribute(this.node, "hidden", !requests);
    setField(this.value, requests, integer(requests));
    setField(this.share, share, percent(share));
    setField(this.cost, cost, tokens(cost));
    setAttribute(this.missed, "hidden", !(cost >= 1));
    updateCounts(this.reasons, reasons, "unscored.reasons", remedies);
  }
}

class RefusedTile extends Tile {
  constructor() {
    super("Refused by the expert", "refused");
    this.share = field("refusals.share");
    this.reasons = element("dl", { class: "facts" });
    this.note.append(
      this.share,
      " of the requests for which the expert was called; only the expert refused them, so they do not affect the " +
        "threshold; by status and the request fields that its server named:",
    );
    this.append(this.reasons);
  }

  /** @param {Game} game */
  update({ refused, refusals: { share, reasons }, remedies }) {
    setAttribute(this.node, "hidden", !refused);
    setField(this.value, refused, integer(refused));
    setField(this.share, share, percent(share));
    updateCounts(this.reasons, reasons, "refusals.reasons", remedies);
  }
}
