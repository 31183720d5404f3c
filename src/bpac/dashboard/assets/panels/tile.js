// A tile: a title, one number in large type, and notes below it.

import { element, field, find, reconcile, setField } from "../dom.js";
import { integer } from "../numbers.js";

/** @import { Child } from "../dom.js" */

export class Tile {
  /**
   * @param {string} title
   * @param {string} name of the field that shows the number
   * @param {Child[]} notes
   */
  constructor(title, name, ...notes) {
    this.value = field(name, { class: "number tile-value" });
    this.note = element("div", { class: "tile-note" }, ...notes);
    const heading = element("h3", {}, title);
    this.node = element("div", { class: "panel tile", "data-tile": name }, heading, this.value, this.note);
  }

  /**
   * Add a list beside the number, for which the tile gets more room.
   * @param {HTMLDListElement} list
   * @param {string[]} classes of the tile
   */
  append(list, ...classes) {
    this.node.append(list);
    this.node.classList.add("wide", ...classes);
  }
}

/**
 * Counts by cause, each with what to do about it.
 * @param {HTMLElement} list
 * @param {Record<string, number>} counts
 * @param {string} name of the fields, without the cause
 * @param {Record<string, string>} remedies
 */
export function updateCounts(list, counts, name, remedies) {
  reconcile(
    list,
    Object.entries(counts).sort(),
    ([cause]) => cause,
    ([cause]) =>
      element(
        "div",
        {},
        element("dt", {}, element("b", {}, cause), `: ${remedies[cause]}`),
        element("dd", {}, field(`${name}.${cause}`)),
      ),
    (row, [, count]) => setField(find(row, "[data-field]"), count, integer(count)),
  );
}
