// The score that decides, where scores are learned.

/** @import { Game } from "./types.js" */

/**
 * What the threshold is compared with.
 * @param {Game} game
 */
export function scoreInForce(game) {
  return game.scores.some(({ score, in_force }) => score > 0 && in_force) ? "learned score" : "uncertainty";
}
