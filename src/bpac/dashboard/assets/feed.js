// Asks again and again. Ages come from the clock, not from counted ticks: timers are late, sleep and are throttled.

import { SourceError } from "./sources.js";

const EVERY = 2000;
// Nobody looks, but the verdict stands in the tab's name.
const EVERY_UNSEEN = 30000;
const LONGEST_PAUSE = 30000;

export class Feed {
  // ask: fetches and shows; onState: told when anything about the connection changes.
  // repeats: whether there is anything new to be expected.
  constructor(ask, onState, repeats) {
    this.ask = ask;
    this.repeats = repeats;
    this.onState = onState;
    this.timer = null;
    this.asking = false;
    this.again = false;
    this.received = null; // when the last numbers came
    this.failedSince = null;
    this.failures = 0;
    this.due = 0;
    this.error = null;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.refresh();
    });
    window.addEventListener("online", () => this.refresh());
    window.addEventListener("pageshow", () => this.refresh());
  }

  // Ask now. Whoever asks while an answer is under way is asked for after it.
  async refresh() {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    clearTimeout(this.timer);
    do {
      this.again = false;
      try {
        await this.ask();
        this.received = Date.now();
        this.failedSince = null;
        this.failures = 0;
        this.error = null;
      } catch (error) {
        this.failedSince ??= Date.now();
        this.failures += 1;
        this.error =
          error instanceof SourceError ? error : new SourceError("this page cannot show what the gateway says");
        // A mistake of ours: the console hears of it, and the page goes on.
        if (error !== this.error) reportError(error);
      }
    } while (this.again);
    this.asking = false;
    const pause = this.failures
      ? Math.min(LONGEST_PAUSE, EVERY * 2 ** (this.failures - 1))
      : document.hidden
        ? EVERY_UNSEEN
        : EVERY;
    this.due = Date.now() + pause;
    if (this.repeats) this.timer = setTimeout(() => this.refresh(), pause);
    this.onState();
  }

  // Seconds since the last numbers.
  age() {
    return this.received === null ? null : (Date.now() - this.received) / 1000;
  }
}
