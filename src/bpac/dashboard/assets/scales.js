// From numbers to places: scales and their ticks.

// The ticks of a linear axis: about as many as wanted, at round numbers.
export function linearTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= 0.999 * rough);
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9 * step; number += 1) {
    // 3 * 0.1 is not 0.3 in binary; ticks are.
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

export function linear(low, high, from, to) {
  const span = high - low || 1;
  const place = (value) => from + ((value - low) / span) * (to - from);
  return { low, high, place, ticks: (wanted) => linearTicks(low, high, wanted) };
}

// For scores, which crowd near 0: the square root gives them room there, and 0 and 1 stay at the ends.
export function crowded(low, high, from, to) {
  const inner = linear(Math.sqrt(low), Math.sqrt(high), from, to);
  const good = [0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1];
  const few = [0, 0.01, 0.1, 0.3, 0.6, 1];
  const ticks = (wanted) => (wanted < 8 ? few : good).filter((tick) => tick >= low && tick <= high);
  return { low, high, place: (value) => inner.place(Math.sqrt(Math.max(0, value))), ticks };
}

// For durations: decades.
export function logarithmic(low, high, from, to) {
  const inner = linear(Math.log10(low), Math.log10(high), from, to);
  const ticks = () => {
    const found = [];
    for (let tens = Math.ceil(inner.low - 1e-9); tens <= inner.high + 1e-9; tens += 1) found.push(10 ** tens);
    return found;
  };
  return { low, high, place: (value) => inner.place(Math.log10(Math.max(value, low))), ticks };
}

// The number of the place nearest to a point; places rise.
export function nearest(places, point) {
  let low = 0;
  let high = places.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] <= point) low = middle;
    else high = middle;
  }
  return point - places[low] <= places[high] - point ? low : high;
}
