// Scales: from values to positions in a picture, and the ticks of an axis.

/**
 * @typedef {object} Scale
 * @property {number} low
 * @property {number} high
 * @property {(value: number) => number} position in pixels
 * @property {(wanted: number) => number[]} ticks about as many as wanted
 */
/** @typedef {(low: number, high: number, from: number, to: number) => Scale} ScaleMaker */

/**
 * The ticks of a linear axis, at round numbers.
 * @param {number} low
 * @param {number} high
 * @param {number} wanted
 */
export function linearTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5].map((factor) => factor * power).find((size) => size >= 0.999 * rough) ?? 10 * power;
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9 * step; number += 1) {
    // 3 * 0.1 is 0.30000000000000004 in binary.
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

/** @type {ScaleMaker} */
export function linear(low, high, from, to) {
  const span = high - low || 1;
  const position = (/** @type {number} */ value) => from + ((value - low) / span) * (to - from);
  return { low, high, position, ticks: (wanted) => linearTicks(low, high, wanted) };
}

/**
 * For scores, many of which lie close to 0: the square root spreads them there, while 0 and 1 stay at the ends.
 * @type {ScaleMaker}
 */
export function squareRoot(low, high, from, to) {
  const inner = linear(Math.sqrt(low), Math.sqrt(high), from, to);
  const many = [0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1];
  const few = [0, 0.01, 0.1, 0.3, 0.6, 1];
  return {
    low,
    high,
    position: (value) => inner.position(Math.sqrt(Math.max(0, value))),
    ticks: (wanted) => (wanted < 8 ? few : many).filter((tick) => tick >= low && tick <= high),
  };
}

/**
 * For durations; ticks at powers of ten.
 * @type {ScaleMaker}
 */
export function logarithmic(low, high, from, to) {
  const inner = linear(Math.log10(low), Math.log10(high), from, to);
  const ticks = () => {
    const found = [];
    for (let tens = Math.ceil(inner.low - 1e-9); tens <= inner.high + 1e-9; tens += 1) found.push(10 ** tens);
    return found;
  };
  return { low, high, position: (value) => inner.position(Math.log10(Math.max(value, low))), ticks };
}

/**
 * The index of the position nearest to a point.
 * @param {number[]} positions in ascending order
 * @param {number} point
 */
export function nearest(positions, point) {
  let low = 0;
  let high = positions.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (positions[middle] <= point) low = middle;
    else high = middle;
  }
  return point - positions[low] <= positions[high] - point ? low : high;
}
