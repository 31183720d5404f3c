// What the estimate at other limits shows.

import { percent } from "./numbers.js";

export function whatIfSpec(game) {
  const rows = game.what_if;
  if (!rows) return { empty: game.series === null ? "Being fetched …" : "Nothing is known yet." };
  if (!rows.length) return { empty: "Too little has been graded to say anything about other limits." };
  const limits = rows.map((row) => row.epsilon);
  const nearest = limits.reduce(
    (best, value, at) => (Math.abs(value - game.epsilon) < Math.abs(limits[best] - game.epsilon) ? at : best),
    0,
  );
  const values = rows.map((row) => row.expert_call_rate);
  const said = rows[nearest];
  const edge = 0.02 * (Math.max(...limits) - Math.min(...limits));
  return {
    sentence:
      `Estimated from the rounds graded so far: with a limit of ${percent(said.epsilon)} and a threshold known from ` +
      `the start, the expert would be called in about ${percent(said.expert_call_rate)} of all rounds ` +
      `(95\u00a0% interval ${percent(said.low)} to ${percent(said.high)}). No promise is made here.`,
    x: {
      values: limits,
      low: Math.max(0, Math.min(...limits) - edge),
      high: Math.max(...limits) + edge,
      name: "limit ε",
      tick: percent,
      text: (at) => `limit ${percent(limits[at])}`,
      rest: nearest,
    },
    y: {
      low: 0,
      high: 1,
      tick: percent,
      text: (value, _, at) => `${percent(value)} (${percent(rows[at].low)} to ${percent(rows[at].high)})`,
    },
    lines: [
      {
        name: "expert calls, estimated",
        values,
        style: "first",
        dots: true,
        band: { low: rows.map((row) => row.low), high: rows.map((row) => row.high) },
      },
    ],
    rules: [{ x: game.epsilon, label: "limit now", style: "threshold" }],
    table: {
      columns: ["limit ε", "expert calls, estimated", "from", "to"].map((name) => ({ name, text: percent })),
      rows: rows.map((row) => [row.epsilon, row.expert_call_rate, row.low, row.high]),
    },
  };
}
