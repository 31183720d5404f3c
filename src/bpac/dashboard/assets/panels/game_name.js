// The name of a game: its route, and its segment where the route is divided.

import { escapeInvisible } from "../dom.js";

// Letters of some scripts run from right to left: isolated, they do not reorder the sentence around them.
const isolated = (/** @type {string} */ name) => (/[^ -~]/.test(name) ? `\u2068${name}\u2069` : name);

/** @param {{ route: string, segment: string }} game */
export const gameName = ({ route, segment }) =>
  [route, ...(segment ? [segment] : [])].map((name) => isolated(escapeInvisible(name))).join(" / ");
