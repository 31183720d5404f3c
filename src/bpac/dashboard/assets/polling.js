// Loads the document again and again. Ages come from the clock, not from counted ticks: browsers delay and skip timers.

import { SourceError } from "./sources.js";

const INTERVAL_MS = 2000;
// While the page is hidden; its title shows the verdict, so it is not stopped altogether.
const HIDDEN_INTERVAL_MS = 30000;
const LONGEST_RETRY_MS = 30000;

export class Poller {
  /**
   * @param {() => Promise<void>} load loads and shows the document
   * @param {() => void} onState called when the state of the connection may have changed
   * @param {boolean} repeats false where the document never changes
   */
  constructor(load, onState, repeats) {
    this.load = load;
    this.onState = onState;
    this.repeats = repeats;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.loading = false;
    this.again = false;
    /** @type {number | null} when the last document came, in milliseconds */
    this.received = null;
    /** @type {number} when the next attempt starts, in milliseconds */
    this.nextAttempt = 0;
    this.failures = 0;
    /** @type {{ since: number, error: SourceError } | null} */
    this.failure = null;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.refresh();
    });
    window.addEventListener("online", () => this.refresh());
    window.addEventListener("pageshow", () => this.refresh());
  }

  // Load now, or once more after the load that is under way.
  async refresh() {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    clearTimeout(this.timer);
    do {
      this.again = false;
      try {
        await this.load();
        this.received = Date.now();
        this.failures = 0;
        this.failure = null;
      } catch (error) {
        this.failures += 1;
        this.failure = { since: this.failure?.since ?? Date.now(), error: asSourceError(error) };
      }
    } while (this.again);
    this.loading = false;
    const pause = this.pause();
    this.nextAttempt = Date.now() + pause;
    if (this.repeats) this.timer = setTimeout(() => this.refresh(), pause);
    this.onState();
  }

  pause() {
    if (this.failures) return Math.min(LONGEST_RETRY_MS, INTERVAL_MS * 2 ** (this.failures - 1));
    return document.hidden ? HIDDEN_INTERVAL_MS : INTERVAL_MS;
  }

  // Seconds since the last document; null before the first.
  age() {
    return this.received === null ? null : (Date.now() - this.received) / 1000;
  }
}

/**
 * An error of ours is reported in the console, and the page goes on.
 * @param {unknown} error
 */
function asSourceError(error) {
  if (error instanceof SourceError) return error;
  reportError(error);
  return new SourceError("this page cannot display the gateway's response");
}
