// What happened: thresholds opened and closed, alarms, epochs.

import { element, reconcile, setAttribute } from "./dom.js";
import { moment, unbroken, whole } from "./numbers.js";

const MOST = 200;

export class Events {
  constructor() {
    this.list = element("ol", { class: "events", reversed: true });
    this.empty = element(
      "p",
      { class: "empty" },
      "Nothing yet. Openings and closings of the threshold and alarms appear here.",
    );
    const scroll = element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "What happened" },
      this.list,
    );
    this.node = element(
      "section",
      { class: "panel", "data-panel": "events" },
      element("h3", {}, "What happened"),
      this.empty,
      scroll,
    );
  }

  update(game) {
    const events = [...(game.events ?? [])].reverse().slice(0, MOST);
    setAttribute(this.empty, "hidden", events.length > 0);
    reconcile(
      this.list,
      events,
      (event) => `${event.step}-${event.kind}-${event.text}`,
      eventItem,
      () => {},
    );
  }
}

function eventItem(event) {
  const when = moment(event.at);
  return element(
    "li",
    { "data-kind": event.kind },
    element("span", { class: "event-step number" }, `round ${whole(event.step)}`),
    element("span", { class: "event-text" }, unbroken(event.text)),
    element("span", { class: "event-time number" }, when),
  );
}
