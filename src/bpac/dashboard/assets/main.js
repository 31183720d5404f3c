// The page: which view the address names, the theme, and the state of the connection.

import { element, find, setAttribute, setText } from "./dom.js";
import { ago, time } from "./numbers.js";
import { gameName } from "./panels/game_name.js";
import { LostJournalsNotice } from "./panels/lost_journals.js";
import { ModelsNotice } from "./panels/models.js";
import { RefusedCallersNotice } from "./panels/refused_callers.js";
import { ProcessesNotice, ReplicasNotice } from "./panels/replicas.js";
import { TroublesNotice } from "./panels/troubles.js";
import { LEVEL_NAMES } from "./panels/verdict.js";
import { Poller } from "./polling.js";
import { GatewaySource, ReplaySource, SourceError } from "./sources.js";
import { SingleDecisionView } from "./views/decision.js";
import { GameView } from "./views/game.js";
import { OverviewView } from "./views/overview.js";

/** @import { DashboardDocument, DataSource, Game } from "./types.js" */
/** @typedef {"overview" | "game" | "decision"} ViewName */

class DashboardPage {
  /** @param {DataSource} source */
  constructor(source) {
    this.source = source;
    /** @type {DashboardDocument | null} */
    this.data = null;
    /** @type {ViewName | null} */
    this.view = null;
    this.level = "";
    // What concerns the whole gateway stands above every view.
    this.notices = [
      new LostJournalsNotice(),
      new TroublesNotice(),
      new ModelsNotice(),
      new ReplicasNotice(),
      new ProcessesNotice(),
      new RefusedCallersNotice(),
    ];
    this.views = {
      overview: new OverviewView((query) => {
        this.setAddress({ ...query });
        this.poller.refresh();
      }),
      game: new GameView(source, (filters) => this.setAddress({ game: this.address().get("game") ?? "", ...filters })),
      decision: new SingleDecisionView(source),
    };
    this.poller = new Poller(
      () => this.load(),
      () => this.showState(),
      source.live,
    );
    // Another view is shown at once, with the data at hand, because the gateway may be slow or unreachable.
    window.addEventListener("hashchange", () => {
      if (this.data !== null) this.show(this.data);
      this.poller.refresh();
    });
    find(document, "#retry").addEventListener("click", () => this.poller.refresh());
    setInterval(() => this.showState(), 1000);
  }

  address() {
    return new URLSearchParams(location.hash.slice(1));
  }

  /**
   * Put filters into the address, without an entry in the browser's history for each of them.
   * @param {Record<string, string>} values
   */
  setAddress(values) {
    const known = Object.entries(values).filter(([, value]) => value !== "");
    history.replaceState(null, "", `#${new URLSearchParams(known)}`);
  }

  // The game that the address names, or else the only one there is.
  wantedGame() {
    const number = this.address().get("game");
    if (number !== null) return Number(number);
    const [first] = this.data?.games ?? [];
    return first && (this.data?.games_in_all ?? this.data?.games.length) === 1 ? first.game : null;
  }

  /** @param {number | null} number */
  gameOf(number) {
    return this.data?.games.find((game) => game.game === number);
  }

  // Loads all games for the overview, and only the game that is shown otherwise.
  async load() {
    const address = location.hash;
    const number = this.address().has("decision") ? null : this.wantedGame();
    const first = this.data === null;
    let data = this.data;
    if (data === null || number === null)
      data = await this.source.data(null, this.views.overview.follow(this.address()));
    this.data = data;
    // Of many games, only the busiest come with their charts.
    const complete = first && Boolean(this.gameOf(number)?.series);
    if (number !== null && this.source.live && !complete) data = await this.withGame(data, number);
    this.data = data;
    // If a link was followed meanwhile, its view is shown already and its data are loaded next.
    if (location.hash !== address) return;
    try {
      this.show(data);
    } catch (error) {
      this.data = null; // load everything again
      throw error;
    }
  }

  /**
   * The document with the newest data of one game.
   * @param {DashboardDocument} data
   * @param {number} number
   * @returns {Promise<DashboardDocument>}
   */
  async withGame(data, number) {
    try {
      const newest = await this.source.data(number);
      const others = data.games.filter((one) => one.game !== number);
      return { ...data, ...newest, games_left_out: data.games_left_out, games: [...others, ...newest.games] };
    } catch (error) {
      if (!(error instanceof SourceError && error.missing)) throw error;
      return this.source.data(null); // there is no such game
    }
  }

  /** @param {DashboardDocument} data */
  show(data) {
    const decision = this.address().get("decision");
    // The header shows the name of the program before the title.
    setText(find(document, "#title"), data.title.replace(/^bpac /, ""));
    for (const notice of this.notices) notice.update(data);
    const game = this.gameOf(this.wantedGame());
    if (decision !== null) {
      this.openView("decision");
      this.views.decision.load(decision);
      document.title = `Decision – ${data.title}`;
    } else if (game !== undefined) {
      this.openView("game");
      this.views.game.update(game, data, this.address());
      this.announce(game);
      document.title = `${LEVEL_NAMES[game.verdict.level] ?? ""}: ${gameName(game)} – bpac`;
    } else {
      this.openView("overview");
      this.views.overview.follow(this.address());
      this.views.overview.update(data);
      document.title = data.title;
    }
  }

  /** @param {ViewName} name */
  openView(name) {
    if (this.view === name) return;
    const first = this.view === null;
    this.view = name;
    const { node, heading } = this.views[name];
    find(document, "#main").replaceChildren(...this.notices.map((notice) => notice.node), node);
    if (first) return;
    // Moving the focus makes screen readers announce the new view.
    window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }

  /**
   * Announce a verdict that has changed to screen readers.
   * @param {Game} game
   */
  announce(game) {
    const level = `${game.game} ${game.verdict.level}`;
    if (this.level !== "" && level !== this.level) setText(find(document, "#announcement"), game.verdict.text);
    this.level = level;
  }

  showState() {
    const { failure, nextAttempt } = this.poller;
    const age = this.poller.age();
    const [state, text] = this.stateText(age, failure !== null);
    setAttribute(find(document, "#state"), "data-state", state);
    setText(find(document, "#state-text"), text);
    setAttribute(find(document, "#trouble"), "hidden", failure === null);
    if (failure === null) return;
    const shown = age === null ? "There are no figures yet." : "The page shows the last figures received.";
    const signIn = failure.error.signedOut ? " Reload the page to sign in again." : "";
    const what = failure.error.message;
    const since = time(failure.since / 1000);
    setText(find(document, "#trouble-text"), `Since ${since}: ${what}. ${shown}${signIn}`);
    const seconds = Math.max(0, Math.round((nextAttempt - Date.now()) / 1000));
    setText(find(document, "#trouble-next"), `Next attempt in ${seconds} s.`);
  }

  /**
   * The state of the connection, and the same in words.
   * @param {number | null} age of the data, in seconds
   * @param {boolean} failed whether the last attempt failed
   */
  stateText(age, failed) {
    if (!this.source.live) return ["kept", `Replay, ${time(this.data?.generated)}`];
    if (failed) return ["lost", age === null ? "No connection" : `Last update ${ago(age)}`];
    return age === null ? ["waiting", "Connecting…"] : ["live", `Live, ${ago(age)}`];
  }
}

// Three buttons, one of which is pressed.
function startThemes() {
  const root = document.documentElement;
  const buttons = Object.entries({ auto: "Auto", light: "Light", dark: "Dark" }).map(([theme, name]) =>
    element("button", { type: "button", "data-theme-choice": theme }, name),
  );
  const showPressed = () => {
    for (const button of buttons) {
      setAttribute(button, "aria-pressed", String(button.dataset.themeChoice === root.dataset.theme));
    }
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const theme = button.dataset.themeChoice ?? "auto";
      root.dataset.theme = theme;
      showPressed();
      try {
        localStorage.setItem("bpac-theme", theme);
      } catch {
        // A page opened from a disk may have no storage: the choice then lasts until the page is closed.
      }
    });
  }
  find(document, "#themes").append(...buttons);
  showPressed();
}

// The part of the address after # names the view, so the skip link cannot use it.
function startSkipLink() {
  find(document, ".skip").addEventListener("click", (event) => {
    event.preventDefault();
    find(document, "#main").focus();
  });
}

/** @type {DashboardDocument | null} null in the page of a gateway */
const embedded = JSON.parse(find(document, "#document").textContent ?? "null");
startThemes();
startSkipLink();
const source = embedded === null ? new GatewaySource(location.pathname) : new ReplaySource(embedded);
new DashboardPage(source).poller.refresh();
