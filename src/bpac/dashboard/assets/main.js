// The page: which view the address asks for, the theme, and whether the gateway answers.

import { Callers } from "./callers.js";
import { DecisionView } from "./decision.js";
import { element, setAttribute, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { GameView } from "./game.js";
import { LostJournals } from "./lost_journals.js";
import { ago, moment } from "./numbers.js";
import { Overview, placeOf } from "./overview.js";
import { Gateway, Kept } from "./sources.js";
import { LEVELS } from "./verdict.js";

const byId = (id) => document.getElementById(id);

class Page {
  constructor(source) {
    this.source = source;
    this.data = null;
    this.view = null;
    this.level = "";
    // What concerns the whole gateway stands above every view.
    this.notices = [new LostJournals(), new Callers()];
    this.views = {
      overview: new Overview(),
      game: new GameView(source, (filters) => this.setAddress({ game: this.address().get("game") ?? "", ...filters })),
      decision: new DecisionView(source),
    };
    this.feed = new Feed(
      () => this.fetch(),
      () => this.showState(),
      source.live,
    );
    // Another view at once, with the numbers there are: the gateway may be slow, or away.
    window.addEventListener("hashchange", () => {
      if (this.data !== null) this.show();
      this.feed.refresh();
    });
    byId("retry").addEventListener("click", () => this.feed.refresh());
    setInterval(() => this.showState(), 1000);
  }

  address() {
    return new URLSearchParams(location.hash.slice(1));
  }

  // Filters belong to the address, but not each of them to the way back.
  setAddress(values) {
    const known = Object.entries(values).filter(([, value]) => value !== "");
    history.replaceState(null, "", `#${new URLSearchParams(known)}`);
  }

  // The game that the address asks for; the only one there is, if it asks for none.
  wanted() {
    const number = this.address().get("game");
    if (number !== null) return Number(number);
    return this.data !== null && this.data.games.length === 1 ? this.data.games[0].game : null;
  }

  find(number) {
    return this.data?.games.find((game) => game.game === number);
  }

  // All games where all are shown, and the one that is looked at else: the rest need not travel.
  async fetch() {
    const asked = location.hash;
    const number = this.address().has("decision") ? null : this.wanted();
    const first = this.data === null;
    if (first || number === null) this.data = await this.source.data(null);
    // Of many games only the busiest come whole.
    const whole = first && this.find(number)?.series;
    if (number !== null && this.source.live && !whole) await this.fetchGame(number);
    // Whoever went elsewhere meanwhile has seen that view already, and asked for its numbers.
    if (location.hash !== asked) return;
    try {
      this.show();
    } catch (error) {
      this.data = null; // what cannot be shown is asked for anew
      throw error;
    }
  }

  async fetchGame(number) {
    try {
      const { games, lost_journals, callers } = await this.source.data(number);
      const others = this.data.games.filter((one) => one.game !== number);
      this.data = { ...this.data, lost_journals, callers, games: [...others, ...games] };
    } catch (error) {
      if (!error.missing) throw error;
      this.data = await this.source.data(null); // it ended, or never was: all there are
    }
  }

  show() {
    const decision = this.address().get("decision");
    // The name of the program stands before it.
    setText(byId("title"), this.data.title.replace(/^bpac /, ""));
    for (const notice of this.notices) notice.update(this.data);
    const game = this.find(this.wanted());
    if (decision !== null) {
      this.open("decision");
      this.views.decision.show(decision);
      this.name(`Decision – ${this.data.title}`);
    } else if (game !== undefined) {
      this.open("game");
      this.views.game.update(game, this.data, this.address());
      this.announce(game);
      this.name(`${LEVELS[game.verdict.level] ?? ""}: ${placeOf(game)} – bpac`);
    } else {
      this.open("overview");
      this.views.overview.update(this.data);
      this.name(this.data.title);
    }
  }

  open(name) {
    if (this.view === name) return;
    const first = this.view === null;
    this.view = name;
    const { node, heading } = this.views[name];
    byId("main").replaceChildren(...this.notices.map((notice) => notice.node), node);
    if (first) return;
    // A new view: from its top, and said to those who listen.
    window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }

  name(title) {
    if (document.title !== title) document.title = title;
  }

  announce(game) {
    const level = `${game.game} ${game.verdict.level}`;
    if (this.level !== "" && level !== this.level) setText(byId("announcement"), game.verdict.text);
    this.level = level;
  }

  showState() {
    const { failedSince, error, due } = this.feed;
    const age = this.feed.age();
    const lost = failedSince !== null;
    setAttribute(
      byId("state"),
      "data-state",
      !this.source.live ? "kept" : lost ? "lost" : age === null ? "waiting" : "live",
    );
    if (!this.source.live) setText(byId("state-text"), `Replay, ${moment(this.data?.generated)}`);
    else if (lost) setText(byId("state-text"), age === null ? "Not reached" : `Numbers from ${ago(age)}`);
    else setText(byId("state-text"), age === null ? "Connecting …" : `Live, ${ago(age)}`);
    setAttribute(byId("trouble"), "hidden", !lost);
    if (!lost) return;
    const last = age === null ? "There are no numbers yet." : "These are the last numbers.";
    const signedOut = error.signedOut ? " Reload the page to sign in again." : "";
    setText(byId("trouble-text"), `Since ${moment(failedSince / 1000)} ${error.message}. ${last}${signedOut}`);
    setText(byId("trouble-next"), `Next try in ${Math.max(0, Math.round((due - Date.now()) / 1000))} s.`);
  }
}

// Three buttons in a row, one of which is pressed.
function startThemes() {
  const themes = { auto: "Auto", light: "Light", dark: "Dark" };
  const root = document.documentElement;
  const buttons = Object.entries(themes).map(([theme, name]) =>
    element("button", { type: "button", "data-theme-choice": theme }, name),
  );
  const show = () =>
    buttons.forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === root.dataset.theme)),
    );
  for (const button of buttons) {
    button.addEventListener("click", () => {
      root.dataset.theme = button.dataset.themeChoice;
      show();
      try {
        localStorage.setItem("bpac-theme", root.dataset.theme);
      } catch {
        // A page from a disk may have no storage: the choice then lasts as long as the page.
      }
    });
  }
  byId("themes").append(...buttons);
  show();
}

// The address after # says which view is shown, so the link to skip to it cannot use it.
function startSkipping() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
}

const kept = JSON.parse(byId("document").textContent);
startThemes();
startSkipping();
new Page(kept === null ? new Gateway(location.pathname) : new Kept(kept)).feed.refresh();
