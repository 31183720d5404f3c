// The choice of the horizontal axis of all charts over the requests of a game, remembered in this browser.

import { element, setAttribute, setText } from "../dom.js";

/** @import { AxisName } from "../charts/series_axis.js" */
/** @import { Unit } from "../types.js" */

const AXIS_STORAGE_KEY = "bpac-axis";
/** @type {Record<AxisName, string>} */
const AXIS_NAMES = { requests: "Requests", time: "Time" };

export class AxisChoice {
  /** @param {() => void} onChange */
  constructor(onChange) {
    /** @type {AxisName} */
    this.axis = rememberedAxis() === "time" ? "time" : "requests";
    this.buttons = /** @type {AxisName[]} */ (Object.keys(AXIS_NAMES)).map((axis) => {
      const button = element("button", { type: "button", "data-axis": axis }, AXIS_NAMES[axis]);
      button.addEventListener("click", () => {
        this.axis = axis;
        this.showPressed();
        rememberAxis(axis);
        onChange();
      });
      return button;
    });
    const group = element("div", { class: "choices", role: "group", "aria-label": "Horizontal axis of the charts" });
    group.append(...this.buttons);
    this.node = element("div", { class: "axis-choice" }, element("span", {}, "Charts by"), group);
    this.showPressed();
  }

  /** @param {Unit} unit what a round of the game is */
  nameRounds(unit) {
    for (const button of this.buttons)
      if (button.dataset.axis === "requests") setText(button, unit === "episode" ? "Episodes" : AXIS_NAMES.requests);
  }

  showPressed() {
    for (const button of this.buttons) setAttribute(button, "aria-pressed", String(button.dataset.axis === this.axis));
  }
}

// A page opened from a disk may have no storage: the choice then lasts until the page is closed.
function rememberedAxis() {
  try {
    return localStorage.getItem(AXIS_STORAGE_KEY);
  } catch {
    return null;
  }
}

/** @param {AxisName} axis */
function rememberAxis(axis) {
  try {
    localStorage.setItem(AXIS_STORAGE_KEY, axis);
  } catch {
    // Not remembered.
  }
}
