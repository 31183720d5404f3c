// The name of a game: its route, and its segment where the route is divided.

import { escapeInvisible } from "../dom.js";

/** @param {{ route: string, segment: string }} game */
export const gameName = ({ route, segment }) => escapeInvisible(segment ? `${route} / ${segment}` : route);
