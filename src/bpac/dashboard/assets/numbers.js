// Numbers as text. Rates are fractions everywhere else.

const INTEGER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNKNOWN = "unknown";
// Keeps a number and its unit on one line.
const NO_BREAK_SPACE = "\u00a0";

/** @typedef {number | null | undefined} MaybeNumber */

/**
 * @param {MaybeNumber} value
 * @returns {value is number}
 */
const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

/** @param {MaybeNumber} value */
export function integer(value) {
  return isKnown(value) ? INTEGER.format(value) : UNKNOWN;
}

/**
 * @param {string} text
 * @param {number} value
 */
function withSign(text, value) {
  return value < 0 ? `−${text}` : text;
}

/** @param {MaybeNumber} value */
export function tokens(value) {
  return isKnown(value) ? withSign(INTEGER.format(Math.abs(value)), Math.round(value)) : UNKNOWN;
}

/**
 * An amount of money, with enough digits for its size. The currency is that of the configured prices and is named apart.
 * @param {MaybeNumber} value
 */
export function money(value) {
  if (!isKnown(value)) return UNKNOWN;
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 1 || size === 0 ? 2 : Math.min(8, 2 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 2), maximumFractionDigits: digits });
  return withSign(text, value);
}

/** @param {MaybeNumber} value a fraction */
export function percent(value) {
  return percentText(value, Math.round);
}

/**
 * An upper bound, rounded up: "at most 2.1 %" must not stand for 2.14 %.
 * @param {MaybeNumber} value a fraction
 */
export function percentRoundedUp(value) {
  return percentText(value, Math.ceil);
}

/**
 * A lower bound, rounded down: "at least 2.2 %" must not stand for 2.14 %.
 * @param {MaybeNumber} value a fraction
 */
export function percentRoundedDown(value) {
  return percentText(value, Math.floor);
}

/**
 * @param {MaybeNumber} value
 * @param {(value: number) => number} round
 */
function percentText(value, round) {
  if (!isKnown(value)) return UNKNOWN;
  const hundred = 100 * value;
  const digits = hundred !== 0 && Math.abs(hundred) < 10 ? (Math.abs(hundred) < 1 ? 2 : 1) : hundred === 100 ? 0 : 1;
  const scale = 10 ** digits;
  // Without this, 100 * 0.07 = 7.000000000000001 would be rounded up to 7.1.
  const rounded = round(Number((hundred * scale).toPrecision(12))) / scale;
  if (rounded === 0 && hundred > 0 && round !== Math.floor) return `<${(1 / scale).toFixed(digits)}${NO_BREAK_SPACE}%`;
  const size = Math.abs(rounded);
  return withSign(`${Number.isInteger(size) ? size : size.toFixed(digits)}${NO_BREAK_SPACE}%`, rounded);
}

/**
 * A threshold or an uncertainty, by significant digits, because many lie close to 0.
 * @param {MaybeNumber} value
 */
export function score(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value === 0 || value === 1) return String(value);
  const text = value < 0.001 ? value.toExponential(2) : value.toPrecision(3);
  // 0.9996 must not be shown as 1: a threshold of 1 keeps every draft.
  return Number(text) === 1 ? value.toPrecision(5) : text;
}

/** @param {MaybeNumber} logarithm of the wealth */
export function wealth(logarithm) {
  if (!isKnown(logarithm)) return UNKNOWN;
  const tens = logarithm / Math.LN10;
  if (tens >= 5 || tens < -3) return `10^${tens.toFixed(Math.abs(tens) < 100 ? 1 : 0)}`.replace("-", "−");
  const value = Math.exp(logarithm);
  return value >= 100 ? INTEGER.format(value) : String(Number(value.toPrecision(2)));
}

/** @param {MaybeNumber} seconds */
export function duration(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  const milliseconds = 1000 * seconds;
  if (milliseconds >= 100000) return `${INTEGER.format(seconds)}${NO_BREAK_SPACE}s`;
  if (milliseconds >= 10000) return `${seconds.toFixed(1)}${NO_BREAK_SPACE}s`;
  if (milliseconds >= 100) return `${INTEGER.format(milliseconds)}${NO_BREAK_SPACE}ms`;
  return `${Number(milliseconds.toPrecision(2))}${NO_BREAK_SPACE}ms`;
}

/** @param {number} seconds since then */
export function ago(seconds) {
  if (seconds < 1.5) return "just now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

/**
 * A time of day, with the date if it is not today; empty if unknown.
 * @param {MaybeNumber} at unix seconds
 */
export function time(at) {
  if (!isKnown(at) || at <= 0) return "";
  const date = new Date(1000 * at);
  const clock = date.toLocaleTimeString("en-GB");
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? clock
    : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })}, ${clock}`;
}

/**
 * A sentence in which no line ends between a number and its unit.
 * @param {string} text
 */
export function keepUnits(text) {
  return text.replace(/(\d) ([%×])/g, `$1${NO_BREAK_SPACE}$2`).replace(/([≤≥<]) (\d)/g, `$1${NO_BREAK_SPACE}$2`);
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} many
 */
export function plural(count, one, many = `${one}s`) {
  return `${integer(count)} ${count === 1 ? one : many}`;
}
