// What the charts over the rounds of a game show: threshold, expert calls and tokens, served loss.

import { atMost, moment, percent, score, tokens, whole } from "./numbers.js";

// How the marks of events look; all others are bells.
const FORMS = { opened: "up", raised: "up", closed: "down", lowered: "down", fell: "down" };
const NOTHING = "Nothing has been asked yet. The line starts with the first round.";

const roundColumn = { name: "round", text: whole };

// The axis that all of them share.
function overRounds(series) {
  const last = series.step.length - 1;
  const text = (at) => {
    const when = moment(series.at?.[at]);
    return `round ${whole(series.step[at])}${when ? `, ${when}` : ""}`;
  };
  return {
    values: series.step,
    low: Math.min(1, series.step[0] ?? 0),
    high: Math.max(2, series.step[last] ?? 1),
    name: "rounds",
    tick: whole,
    text,
    resting: `latest: round ${whole(series.step[last])}`,
  };
}

function missing(game) {
  if (!game.series) return "Being fetched …";
  return game.series.step.length ? null : NOTHING;
}

export function thresholdSpec(game) {
  const empty = missing(game);
  const events = game.events ?? [];
  const sentence =
    game.threshold > 0
      ? `Drafts with an uncertainty below ${score(game.threshold)} are kept.`
      : "The threshold is closed: every answer comes from the expert.";
  if (empty) return { empty, sentence };
  const { series } = game;
  const starts = series.step.filter((_, index) => index > 0 && series.epoch[index] !== series.epoch[index - 1]);
  const ends = [...starts, series.step.at(-1)];
  const zones = ends
    .slice(1)
    .map((end, index) => ({ x: [ends[index], end], style: index % 2 ? "epoch-even" : "epoch-odd" }));
  const highest = Math.max(...series.threshold);
  return {
    sentence: starts.length
      ? `${sentence} A drift alarm has started a new epoch ${starts.length === 1 ? "once" : `${starts.length} times`}.`
      : sentence,
    x: overRounds(series),
    y: { low: 0, high: highest > 0 ? Math.min(1, 1.15 * highest) : 1, tick: (value) => String(value), text: score },
    lines: [{ name: "threshold", values: series.threshold, style: "first", stepped: true }],
    zones,
    marks: events
      .filter((event) => event.step >= (series.step[0] ?? 0))
      .map((event) => ({ x: event.step, form: FORMS[event.kind] ?? "bell", label: event.text })),
    table: {
      columns: [
        roundColumn,
        { name: "time", text: moment },
        { name: "threshold", text: score },
        { name: "epoch", text: whole },
      ],
      rows: series.step.map((step, at) => [step, series.at?.[at], series.threshold[at], series.epoch[at]]),
    },
  };
}

// Over how many of the series' points "lately" reaches: long enough to be calm, short enough to be news.
const latePoints = (series) => Math.max(1, Math.round(series.step.length / 12));

// The share of expert calls over the last rounds before each point; not known at the first ones.
export function lateRates(series) {
  const reach = latePoints(series);
  return series.step.map((step, at) => {
    if (at < reach) return null;
    return (series.expert_calls[at] - series.expert_calls[at - reach]) / (step - series.step[at - reach]);
  });
}

// How many rounds that is at the last point; none if they are too few to speak of.
export function lateRounds(series) {
  const last = series.step.length - 1;
  const rounds = series.step[last] - series.step[Math.max(0, last - latePoints(series))];
  return rounds >= 20 ? rounds : null;
}

export function ratesSpec(game) {
  const empty = missing(game);
  if (empty) return { empty };
  const { series } = game;
  const rate = series.step.map((step, at) => (step ? series.expert_calls[at] / step : null));
  const late = lateRates(series);
  const counted = (series.always_tokens ?? []).some((count) => count > 0);
  const ratio = counted
    ? series.step.map((_, at) =>
        series.always_tokens[at] > 0 ? series.spent_tokens[at] / series.always_tokens[at] : null,
      )
    : null;
  const lines = [
    { name: "expert calls", values: rate, style: "first" },
    { name: "lately", values: late, style: "third" },
  ];
  if (ratio) lines.push({ name: "tokens", values: ratio, style: "second" });
  const dearest = ratio ? Math.max(...ratio.slice(Math.floor(ratio.length / 4))) : 0;
  const rounds = lateRounds(series);
  const lately = rounds ? `, and ${percent(late.at(-1))} of the last ${whole(rounds)}` : "";
  const estimated = game.savings?.tokens_saved_at_least === undefined ? "" : " (estimated)";
  const spent = ratio
    ? ` Tokens spent are ${percent(ratio.at(-1))} of what always asking the expert would have generated${estimated}.`
    : "";
  const columns = [roundColumn, { name: "expert calls", text: whole }, { name: "rate", text: percent }];
  const rows = series.step.map((step, at) => [step, series.expert_calls[at], rate[at]]);
  if (ratio) {
    columns.push(
      { name: "tokens spent", text: tokens },
      { name: "always the expert", text: tokens },
      { name: "ratio", text: percent },
    );
    rows.forEach((row, at) => row.push(series.spent_tokens[at], series.always_tokens[at], ratio[at]));
  }
  return {
    sentence: `The expert was called in ${percent(rate.at(-1))} of all rounds${lately}.${spent}`,
    x: overRounds(series),
    y: { low: 0, high: Math.max(1, Math.min(1.5, 1.05 * dearest)), tick: percent, text: percent },
    lines,
    rules: ratio && dearest > 1 ? [{ y: 1, label: "always the expert", style: "quiet" }] : [],
    table: { columns, rows },
  };
}

export function certificateSpec(game) {
  const empty = missing(game);
  if (empty) return { empty };
  const { series, epsilon, certificate } = game;
  const highest = Math.max(0, ...series.average_upper.slice(Math.floor(series.step.length / 20)));
  const high = Math.max(1.3 * epsilon, Math.min(3 * epsilon, 1.1 * highest));
  const bound = atMost(certificate.average_upper);
  const lines = [{ name: "at most", values: series.average_upper, style: "first" }];
  const columns = [roundColumn, { name: "served loss at most", text: atMost }];
  const rows = series.step.map((step, at) => [step, series.average_upper[at]]);
  // Only a replay knows what was really lost.
  if (series.served_loss) {
    lines.push({ name: "really served", values: series.served_loss, style: "second" });
    columns.push({ name: "really served", text: percent });
    rows.forEach((row, at) => row.push(series.served_loss[at]));
  }
  return {
    sentence:
      `The drafts served so far lost at most ${bound} per round against always asking the expert, with ` +
      `${percent(certificate.confidence)} confidence, whenever you look. The limit is ${percent(epsilon)}.`,
    x: overRounds(series),
    y: {
      low: 0,
      high,
      tick: percent,
      text: (value, line) => (line.style === "first" ? atMost(value) : percent(value)),
    },
    lines,
    zones: [{ y: [epsilon, high], style: "forbidden" }],
    rules: [{ y: epsilon, label: `limit ε = ${percent(epsilon)}`, style: "limit" }],
    table: { columns, rows },
  };
}
