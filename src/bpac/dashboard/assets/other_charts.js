// What the charts over uncertainty show: wealth of the bets on each threshold, and where the drafts lie.

import { percent, plural, score, wealth, whole } from "./numbers.js";
import { crowded, linear } from "./scales.js";

// Scores that crowd near 0 come in finer bins there, and small thresholds lie there: the axis then makes room for them.
export function scoreScale(game) {
  const edges = game.uncertainty?.edges ?? [];
  const wide = edges.length > 1 ? edges.at(-1) - edges.at(-2) : 1;
  const finer = edges.length > 1 && edges[1] - edges[0] < 0.9 * wide;
  return finer || (game.threshold > 0 && game.threshold < 0.1) ? crowded : linear;
}

// How close the next threshold is: the sentence, and where it stands.
function nextThreshold(game, kept) {
  const goal = kept.goal;
  const needed = wealth(goal);
  const at = kept.threshold.findIndex((value, index) => value > game.threshold && kept.log_wealth[index] < goal);
  if (at < 0) return { at, sentence: "Every threshold is certified: all drafts may be kept." };
  const share = percent(Math.max(0, kept.log_wealth[at]) / goal);
  const made = `have turned 1 into ${wealth(kept.log_wealth[at])} and need ${needed}: ${share} of the way.`;
  if (game.threshold === 0) {
    return { at, sentence: `No threshold is certified yet. The bets on the smallest ${made}` };
  }
  const [now, next] = [score(game.threshold), score(kept.threshold[at])];
  const lapsed = kept.log_wealth[kept.threshold.indexOf(game.threshold)] < goal;
  const until = game.alarm ? " unless the drift alarm rings" : "";
  const held = lapsed ? `${now} was certified before and stays so${until}.` : `Certified up to ${now}.`;
  const where = next === now ? "just above it" : `on the next threshold, ${next},`;
  return { at, sentence: `${held} The bets ${where} ${made}` };
}

// The part of the axis in which something is to be seen: with many rounds, wealth falls within a hair's breadth.
function worthSeeing(game, kept, tens, low, high) {
  if (scoreScale(game) === crowded) return [0, 1];
  const from = kept.threshold.findLast((_, index) => tens[index] >= high) ?? 0;
  const to = kept.threshold.find((_, index) => tens[index] <= low) ?? 1;
  const [left, right] = [Math.min(from, game.threshold), Math.max(to, game.threshold)];
  const edge = Math.max(0.05, 0.5 * (0.2 - (right - left)));
  return right - left > 0.5 ? [0, 1] : [Math.max(0, left - edge), Math.min(1, right + edge)];
}

export function wealthSpec(game) {
  const kept = game.wealth;
  if (!kept) {
    const without = `This policy (${game.policy}) keeps no wealth for each threshold.`;
    return { empty: game.series === null ? "Being fetched …" : without };
  }
  if (!kept.threshold.length) return { empty: "No bet has been placed yet." };
  const goal = kept.goal / Math.LN10;
  // Where α is divided among thresholds or epochs, the bar is higher.
  const bar = Math.abs(kept.goal + Math.log(game.alpha)) < 1e-9 ? "1/α = " : "";
  const tens = kept.log_wealth.map((value) => value / Math.LN10);
  const { at, sentence } = nextThreshold(game, kept);
  const low = Math.max(Math.min(0, ...tens), -1.6 * goal) - 0.1 * goal;
  const high = Math.max(1.5 * goal, Math.min(3 * goal, Math.max(...tens) + 0.15 * goal));
  const [from, to] = worthSeeing(game, kept, tens, low, high);
  const decades = [];
  for (let power = Math.ceil(low); power <= high; power += 1) decades.push(power);
  const rules = [{ y: goal, label: `certified at ${bar}${wealth(kept.goal)}`, style: "limit" }];
  if (game.threshold > 0)
    rules.push({ x: game.threshold, label: `threshold ${score(game.threshold)}`, style: "threshold" });
  return {
    sentence,
    x: {
      values: kept.threshold,
      low: from,
      high: to,
      scale: scoreScale(game),
      name: "threshold",
      tick: String,
      text: (index) => `threshold ${score(kept.threshold[index])}`,
      rest: at < 0 ? kept.threshold.length - 1 : at,
      resting: at < 0 ? "threshold 1" : game.threshold > 0 ? "just above the threshold" : "the smallest threshold",
    },
    y: {
      low,
      high,
      ticks: decades,
      tick: (power) => wealth(power * Math.LN10),
      text: (_, line, index) => wealth(kept.log_wealth[index]),
    },
    lines: [{ name: "wealth", values: tens, style: "first", stepped: false }],
    zones: [{ y: [goal, high], style: "allowed" }],
    rules,
    table: {
      columns: [
        { name: "threshold", text: score },
        { name: "wealth", text: wealth },
        { name: "logarithm of the wealth", text: (value) => value.toFixed(3) },
      ],
      rows: kept.threshold.map((value, index) => [value, kept.log_wealth[index], kept.log_wealth[index]]),
    },
  };
}

export function uncertaintySpec(game) {
  const bins = game.uncertainty;
  if (!bins) return { empty: "Being fetched …" };
  const totals = bins.kept.map((count, index) => count + bins.called[index]);
  const all = totals.reduce((sum, count) => sum + count, 0);
  if (all === 0) return { empty: "No draft has been scored yet." };
  const { edges } = bins;
  const middles = totals.map((_, index) => (edges[index] + edges[index + 1]) / 2);
  const within = (index) => `uncertainty ${score(edges[index])} to ${score(edges[index + 1])}`;
  const fullest = totals.indexOf(Math.max(...totals));
  const kept = bins.kept.reduce((sum, count) => sum + count, 0);
  return {
    sentence:
      `Of ${plural(all, "draft")}, ${whole(kept)} were kept and ${whole(all - kept)} went to the expert. ` +
      "Those left of the threshold are kept, but for a random sample that is checked.",
    x: {
      values: middles,
      low: 0,
      high: 1,
      scale: scoreScale(game),
      name: "uncertainty",
      tick: String,
      text: within,
      rest: fullest,
      resting: "all drafts",
    },
    y: { low: 0, high: 1.1 * Math.max(...totals), tick: whole, text: whole },
    bins: {
      edges,
      stacks: [
        { name: "kept", values: bins.kept, style: "first", bar: true, resting: whole(kept) },
        { name: "expert called", values: bins.called, style: "second", bar: true, resting: whole(all - kept) },
      ],
    },
    lines: [],
    rules:
      game.threshold > 0
        ? [{ x: game.threshold, label: `threshold ${score(game.threshold)}`, style: "threshold" }]
        : [],
    table: {
      columns: [
        { name: "from", text: score },
        { name: "to", text: score },
        { name: "kept", text: whole },
        { name: "expert called", text: whole },
      ],
      rows: totals.map((_, index) => [edges[index], edges[index + 1], bins.kept[index], bins.called[index]]),
    },
  };
}
