// Numbers as people read them. Rates are fractions until here.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNKNOWN = "unknown";
// Between a number and its unit: no line may end there.
const SPACE = "\u00a0";

const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

export function whole(value) {
  return isKnown(value) ? WHOLE.format(value) : UNKNOWN;
}

function signed(text, value) {
  return value < 0 ? `−${text}` : text;
}

// Tokens: whole, with thousands separators.
export function tokens(value) {
  return isKnown(value) ? signed(WHOLE.format(Math.abs(value)), Math.round(value)) : UNKNOWN;
}

// Enough digits for the size of the number; prices are in any currency, so none is named.
export function money(value) {
  if (!isKnown(value)) return UNKNOWN;
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 1 || size === 0 ? 2 : Math.min(8, 2 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 2), maximumFractionDigits: digits });
  return signed(text, value);
}

// A share.
export function percent(value) {
  return shareText(value, Math.round);
}

// A bound from above: "at most 2.1 %" must not stand for 2.14 %.
export function atMost(value) {
  return shareText(value, Math.ceil);
}

function shareText(value, round) {
  if (!isKnown(value)) return UNKNOWN;
  const hundred = 100 * value;
  const digits = hundred !== 0 && Math.abs(hundred) < 10 ? (Math.abs(hundred) < 1 ? 2 : 1) : hundred === 100 ? 0 : 1;
  const scale = 10 ** digits;
  // A little less than a whole step is that step: 0.05 * 100 is not 5 in binary.
  const rounded = round(Number((hundred * scale).toPrecision(12))) / scale;
  if (rounded === 0 && hundred > 0) return `<${(1 / scale).toFixed(digits)}${SPACE}%`;
  return `${Number.isInteger(rounded) ? rounded : rounded.toFixed(digits)}${SPACE}%`;
}

// A threshold or an uncertainty: they crowd near 0, so by significant digits.
export function score(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value === 0 || value === 1) return String(value);
  const text = value < 0.001 ? value.toExponential(2) : value.toPrecision(3);
  // 0.9996 is not 1: a threshold of 1 keeps every draft.
  return Number(text) === 1 ? value.toPrecision(5) : text;
}

// Wealth, given its logarithm.
export function wealth(logarithm) {
  if (!isKnown(logarithm)) return UNKNOWN;
  const tens = logarithm / Math.LN10;
  if (tens >= 5 || tens < -3) return `10^${tens.toFixed(Math.abs(tens) < 100 ? 1 : 0)}`.replace("-", "−");
  const value = Math.exp(logarithm);
  return value >= 100 ? WHOLE.format(value) : String(Number(value.toPrecision(2)));
}

// A duration, given in seconds.
export function duration(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  const milliseconds = 1000 * seconds;
  if (milliseconds >= 100000) return `${WHOLE.format(seconds)}${SPACE}s`;
  if (milliseconds >= 10000) return `${seconds.toFixed(1)}${SPACE}s`;
  if (milliseconds >= 100) return `${WHOLE.format(milliseconds)}${SPACE}ms`;
  return `${Number(milliseconds.toPrecision(2))}${SPACE}ms`;
}

// How long ago, given in seconds.
export function ago(seconds) {
  if (seconds < 1.5) return "just now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

// A moment, in unix seconds: the clock, and the date if it is not today's.
export function moment(at) {
  if (!isKnown(at) || at <= 0) return "";
  const date = new Date(1000 * at);
  const clock = date.toLocaleTimeString("en-GB");
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? clock
    : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })}, ${clock}`;
}

// Words that came with spaces before their units.
export function unbroken(text) {
  return text.replace(/(\d) ([%×])/g, `$1${SPACE}$2`).replace(/([≤<]) (\d)/g, `$1${SPACE}$2`);
}

export function plural(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
