// What does it save, and what is it doing now: the numbers of a game.

import { element, field, reconcile, setAttribute, setField, setText } from "./dom.js";
import { money, percent, plural, score, tokens, whole } from "./numbers.js";
import { lateRates, lateRounds } from "./time_charts.js";

class Tile {
  constructor(name, fieldName) {
    this.value = field(fieldName, { class: "number tile-value" });
    this.note = element("div", { class: "tile-note" });
    this.node = element(
      "div",
      { class: "panel tile", "data-tile": fieldName },
      element("h3", {}, name),
      this.value,
      this.note,
    );
  }

  // Notes are made of words and further fields; what changes has a name.
  notes(...parts) {
    this.note.append(...parts);
    return this;
  }
}

// Numbers under a tile's own, each with its name.
function facts(entries) {
  const rows = entries.map(([name, node]) => element("div", {}, element("dt", {}, name), element("dd", {}, node)));
  return element("dl", { class: "facts" }, ...rows);
}

export class Figures {
  constructor() {
    this.fields = {};
    const named = (name) => (this.fields[name] = field(name));
    this.calls = new Tile("Expert call rate", "expert_call_rate").notes(named("expert_calls"), " of ", named("steps"));
    this.late = element("div");
    this.calls.note.append(this.late);
    this.tokens = new Tile("Tokens saved", "savings.tokens_saved");
    this.dear = element("div", {}, "so far the drafts have cost more than they saved");
    this.known = element("div", {}, "the table knows the tokens of every answer");
    this.bounds = { tokens: bounds(named, "savings.tokens_saved"), money: bounds(named, "savings.money_saved") };
    this.tokens.notes(this.bounds.tokens.node, this.known, this.dear);
    this.spent = facts([
      ["always asking the expert", named("savings.always_tokens")],
      ["spent on drafts", named("savings.draft_tokens")],
      ["spent on the expert", named("savings.expert_tokens")],
      ["spent on judges", named("savings.judge_tokens")],
    ]);
    this.tokens.node.append(this.spent);
    this.money = new Tile("Money saved", "savings.money_saved").notes(
      this.bounds.money.node,
      element("div", {}, "in the currency of your prices"),
    );
    this.threshold = new Tile("Threshold", "threshold");
    this.meaning = element("div");
    this.threshold.notes(this.meaning, element("div", {}, "epoch ", named("epoch")));
    this.open = new Tile("Rounds open", "owed").notes(
      "called the expert, not graded yet; each counts as a loss of 1 until it is",
    );
    this.forfeits = new Tile("Audits without a verdict", "forfeits");
    this.causes = element("dl", { class: "facts" });
    this.given = element("div", {}, "given up, and counted as a loss of 1");
    this.lately = element("div", {}, named("forfeit_share"), " of the latest audits of accepted drafts");
    this.doubt = element("div", { class: "urgent", "data-field": "doubt" });
    this.forfeits.notes(this.given, this.lately, this.doubt, this.causes);
    this.unscored = new Tile("Requests without a score", "unscored.requests");
    this.reasons = element("dl", { class: "facts" });
    this.unscored.notes(
      named("unscored.share"),
      " of all requests; the expert answers them, so nothing is saved, and they do not count as rounds",
    );
    this.unscored.node.append(this.reasons);
    this.refused = new Tile("Refused by the expert", "refused").notes(
      "rounds in which only the expert refused to answer; they neither open nor close a threshold. If there are many, " +
        "compare what callers ask for with what the expert's server supports",
    );
    this.alarm = new Tile("Drift alarm", "alarm.level");
    this.meter = element("span", { class: "meter-fill" });
    this.careful = element("span", { class: "meter-mark" });
    const meter = element("span", { class: "meter", "aria-hidden": "true" }, this.meter, this.careful);
    this.heard = element("span");
    this.alarm.notes(meter, this.heard, "; at ", named("alarm.limit"), " the threshold starts again from 0");
    const saved = [this.calls, this.tokens, this.money];
    const tiles = [...saved, this.threshold, this.alarm, this.open, this.forfeits, this.unscored, this.refused];
    const heading = element("h2", { class: "hidden-text" }, "Figures");
    this.node = element(
      "section",
      { class: "tiles", "aria-label": "Figures" },
      heading,
      ...tiles.map((tile) => tile.node),
    );
  }

  update(game) {
    setField(
      this.calls.value,
      game.expert_call_rate,
      game.expert_call_rate === null ? "–" : percent(game.expert_call_rate),
    );
    setField(this.fields.expert_calls, game.expert_calls, whole(game.expert_calls));
    setField(this.fields.steps, game.steps, plural(game.steps, "round"));
    const rounds = game.series ? lateRounds(game.series) : null;
    setText(this.late, rounds ? `${percent(lateRates(game.series).at(-1))} of the last ${whole(rounds)}` : "");
    this.updateSavings(game.savings);
    setField(this.threshold.value, game.threshold, score(game.threshold));
    setText(
      this.meaning,
      game.threshold > 0 ? "drafts less uncertain than this are kept" : "closed: no draft is kept yet",
    );
    setField(this.fields.epoch, game.epoch, whole(game.epoch));
    setField(this.open.value, game.owed, whole(game.owed));
    const causes = Object.entries(game.forfeits).sort();
    const all = causes.reduce((sum, [, count]) => sum + count, 0);
    setField(this.forfeits.value, all, whole(all));
    setText(this.given, all ? "given up, and counted as a loss of 1" : "no outcome was given up");
    counts(this.causes, causes, "forfeits", game.remedies);
    this.updateDoubt(game);
    this.updateUnscored(game);
    this.updateAlarm(game.alarm);
  }

  // What audits without a verdict do to the route.
  updateDoubt(game) {
    const shown = Boolean(game.alarm) && game.forfeit_share > 0;
    setAttribute(this.lately, "hidden", !shown);
    setField(this.fields.forfeit_share, game.forfeit_share, percent(game.forfeit_share));
    setAttribute(this.doubt, "hidden", !shown || game.doubt < game.alarm.careful);
    const looks = game.alarm && game.doubt >= game.alarm.limit ? "every draft is audited" : "more drafts are audited";
    setField(this.doubt, game.doubt, `${looks} until verdicts come again`);
  }

  updateUnscored(game) {
    const { requests, share, reasons } = game.unscored;
    setAttribute(this.unscored.node, "hidden", !requests);
    setField(this.unscored.value, requests, whole(requests));
    setField(this.fields["unscored.share"], share, percent(share));
    counts(this.reasons, Object.entries(reasons).sort(), "unscored.reasons", game.remedies);
    setAttribute(this.refused.node, "hidden", !game.refused);
    setField(this.refused.value, game.refused, whole(game.refused));
  }

  updateSavings(savings) {
    const counted = Boolean(savings);
    setField(this.tokens.value, savings?.tokens_saved, counted ? tokens(savings.tokens_saved) : "unknown");
    setAttribute(this.tokens.note, "hidden", !counted);
    setAttribute(this.spent, "hidden", !counted);
    setAttribute(this.dear, "hidden", !counted || savings.tokens_saved >= 0);
    const priced = counted && savings.money_saved !== undefined;
    setAttribute(this.money.node, "hidden", !priced);
    if (!counted) return;
    for (const name of ["draft_tokens", "expert_tokens", "judge_tokens", "always_tokens"]) {
      setField(this.fields[`savings.${name}`], savings[name], tokens(savings[name]));
    }
    const bounded = savings.tokens_saved_at_least !== undefined;
    setAttribute(this.bounds.tokens.node, "hidden", !bounded);
    setAttribute(this.known, "hidden", bounded);
    if (bounded) this.bounds.tokens.update(savings, tokens);
    if (priced) this.bounds.money.update(savings, money);
    if (priced) setField(this.money.value, savings.money_saved, money(savings.money_saved));
  }

  updateAlarm(alarm) {
    setAttribute(this.alarm.node, "hidden", !alarm);
    if (!alarm) return;
    setField(this.alarm.value, alarm.level, alarm.level < 100 ? alarm.level.toPrecision(2) : whole(alarm.level));
    setField(this.fields["alarm.limit"], alarm.limit, whole(alarm.limit));
    setText(
      this.heard,
      alarm.level < alarm.careful
        ? `quiet below ${whole(alarm.careful)}`
        : `from ${whole(alarm.careful)} on, more drafts are checked`,
    );
    const share = (level) =>
      `${Math.max(0, Math.min(100, (100 * Math.log(Math.max(1, level))) / Math.log(alarm.limit))).toFixed(1)}%`;
    this.meter.style.setProperty("width", share(alarm.level));
    this.careful.style.setProperty("left", share(alarm.careful));
  }
}

// Between what and what the truth lies; from above nothing may be known.
function bounds(named, name) {
  const [least, most] = [named(`${name}_at_least`), named(`${name}_at_most`)];
  const upper = element("span", {}, ", at most ", most);
  const confidence = element("span");
  const node = element("div", {}, "estimated; at least ", least, upper, confidence);
  const key = name.split(".")[1];
  const update = (savings, text) => {
    setField(least, savings[`${key}_at_least`], text(savings[`${key}_at_least`]));
    setField(most, savings[`${key}_at_most`], text(savings[`${key}_at_most`]));
    setAttribute(upper, "hidden", savings[`${key}_at_most`] === null);
    setText(
      confidence,
      ` (${percent(savings.confidence)} confidence${savings[`${key}_at_most`] === null ? "" : " each"})`,
    );
  };
  return { node, update };
}

// Counts by name, as rows under a tile's own number, each with what to do about it.
function counts(list, entries, name, remedies) {
  const row = ([key]) =>
    element(
      "div",
      {},
      element("dt", {}, element("b", {}, key), `: ${remedies[key]}`),
      element("dd", {}, field(`${name}.${key}`)),
    );
  reconcile(
    list,
    entries,
    ([key]) => key,
    row,
    (node, [, count]) => setField(node.lastElementChild.firstElementChild, count, whole(count)),
  );
}
