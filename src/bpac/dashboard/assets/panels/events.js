// The events of a game: when its threshold opened or closed, and when the drift alarm reset it.

import { element, reconcile, setAttribute } from "../dom.js";
import { integer, keepUnits, time } from "../numbers.js";

/** @import { Game, GameEvent, Unit } from "../types.js" */

export class EventsPanel {
  constructor() {
    this.list = element("ol", { class: "events", reversed: true });
    this.empty = element(
      "p",
      { class: "empty" },
      "No events yet. This list shows when the threshold opens or closes and when the drift alarm is triggered.",
    );
    const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events" };
    const parts = [element("h3", {}, "Events"), this.empty, element("div", region, this.list)];
    this.node = element("section", { class: "panel", "data-panel": "events" }, ...parts);
  }

  /** @param {Game} game */
  update(game) {
    setAttribute(this.empty, "hidden", game.events.length > 0);
    reconcile(
      this.list,
      game.events.toReversed(),
      (event) => `${event.step}-${event.kind}-${event.text}`,
      (event) => eventItem(event, game.unit),
      () => {},
    );
  }
}

/**
 * @param {GameEvent} event
 * @param {Unit} unit
 */
function eventItem(event, unit) {
  return element(
    "li",
    { "data-kind": event.kind },
    element("span", { class: "event-step number" }, `${unit} ${integer(event.step)}`),
    element("span", { class: "event-text" }, keepUnits(event.text)),
    element("span", { class: "event-time number" }, time(event.at)),
  );
}
