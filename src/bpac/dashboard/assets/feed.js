// Asks again and again. Ages come from the clock, not from counted ticks: timers are late, sleep and are throttled.

const EVERY = 2000;
// Nobody looks, but the verdict stands in the tab's name.
const EVERY_UNSEEN = 30000;
const LONGEST_PAUSE = 30000;

export class Feed {
  // ask: fetches and shows; onState: told when anything about the connection changes.
  constructor(ask, onState) {
    this.ask = ask;
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
        if (error.signedOut === undefined) throw error; // ours, and to be heard of
        this.failedSince ??= Date.now();
        this.failures += 1;
        this.error = error;
      }
    } while (this.again);
    this.asking = false;
    const pause = this.failures
      ? Math.min(LONGEST_PAUSE, EVERY * 2 ** (this.failures - 1))
      : document.hidden
        ? EVERY_UNSEEN
        : EVERY;
    this.due = Date.now() + pause;
    this.timer = setTimeout(() => this.refresh(), pause);
    this.onState();
  }

  // Seconds since the last numbers.
  age() {
    return this.received === null ? null : (Date.now() - this.received) / 1000;
  }
}
