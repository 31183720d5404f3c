// Several gateways that share games, and several processes of this gateway: who does what, and how often each ended.

import { element, escapeInvisible, field, find, icon, reconcile, setAttribute, setField, setText } from "../dom.js";
import { integer, plural, time } from "../numbers.js";
import { gameName } from "./game_name.js";

/** @import { DashboardDocument, Level, ProcessEnds, SharedGame, Workers } from "../types.js" */
/** @typedef {{ name: string, pid: number | null, connections: number | null, in_flight: number | null, ends: ProcessEnds }} ProcessRow */

const GAME_COLUMNS = ["folded by", "gateways", "decided, not folded", "entries per second"];
const PROCESS_COLUMNS = ["state", "process id", "connections", "in flight", "started again", "latest ends"];
/** @type {ProcessEnds} */
const NEVER_ENDED = { restarts: 0, lately: 0, since: null };

// A notice with a summary and a table, whose rows have a name and a cell for each column.
class TableNotice {
  /**
   * @param {string} label
   * @param {string} first heading of the names
   * @param {string[]} columns
   */
  constructor(label, first, columns) {
    this.columns = columns;
    this.title = element("span");
    this.rows = element("tbody");
    const heads = [first, ...columns].map((name) => element("th", { scope: "col" }, name));
    const caption = element("caption", { class: "hidden-text" }, label);
    const head = element("thead", {}, element("tr", {}, ...heads));
    const table = element("table", { class: "models cards" }, caption, head, this.rows);
    this.more = element("p", { class: "quiet", hidden: true });
    const details = element("details", {}, element("summary", {}, this.title), table, this.more);
    this.node = element("section", { class: "panel notice several", "aria-label": label, hidden: true }, details);
  }

  /** @param {string} name */
  row(name) {
    const cells = this.columns.map((label) => element("td", { "data-label": label }));
    return element("tr", { "data-row": name }, element("th", { scope: "row" }, name), ...cells);
  }
}

/**
 * @param {HTMLElement} row
 * @param {string} label
 */
const cellOf = (row, label) => find(row, `[data-label="${label}"]`);

/**
 * Show a state by a shape and a word.
 * @param {HTMLElement} cell
 * @param {Level} level
 * @param {string} name
 */
function showPill(cell, level, name) {
  if (cell.dataset.state === name) return;
  cell.dataset.state = name;
  cell.replaceChildren(element("span", { class: `pill level-${level}` }, icon(level), name));
}

/** @param {number | null} value */
const perSecond = (value) => (value !== null && value < 10 ? String(Number(value.toFixed(1))) : integer(value));

export class ReplicasNotice extends TableNotice {
  constructor() {
    super("Gateways that share games", "game", GAME_COLUMNS);
    this.lag = field("replicas.lag");
    this.speed = field("replicas.entries_per_second");
    this.counts = element("span");
    const { title } = this;
    title.append(this.counts, this.lag, " decided rounds are not folded yet, ", this.speed, " entries per second");
  }

  /** @param {DashboardDocument} data */
  update({ replicas }) {
    setAttribute(this.node, "hidden", !replicas);
    if (!replicas) return;
    const { games, folding, lag, entries_per_second, listed } = replicas;
    const gateways = plural(replicas.replicas, "gateway");
    setText(this.counts, `${gateways} share ${plural(games, "game")}, this one folds ${integer(folding)}: `);
    setField(this.lag, lag, integer(lag));
    setField(this.speed, entries_per_second, perSecond(entries_per_second));
    reconcile(
      this.rows,
      listed,
      ({ game }) => game,
      (game) => this.row(gameName(game)),
      updateSharedGame,
    );
    setAttribute(this.more, "hidden", games <= listed.length);
    setText(this.more, `${plural(games - listed.length, "more game")}, not further behind than these.`);
  }
}

/**
 * @param {HTMLElement} row
 * @param {SharedGame} game
 */
function updateSharedGame(row, { folder, folding, folded, replicas, lag, entries_per_second }) {
  const [who, gateways, behind, speed] = GAME_COLUMNS.map((label) => cellOf(row, label));
  if (!folded || folder === "") showPill(who, folded ? "warming" : "broken", "no gateway");
  else showPill(who, "safe", folding ? "this gateway" : `gateway ${escapeInvisible(folder)}`);
  setText(gateways, integer(replicas));
  setText(behind, integer(lag));
  setText(speed, perSecond(entries_per_second));
}

export class ProcessesNotice extends TableNotice {
  constructor() {
    super("Processes", "process", PROCESS_COLUMNS);
  }

  /** @param {DashboardDocument} data */
  update({ workers }) {
    setAttribute(this.node, "hidden", !workers);
    if (!workers) return;
    const { wanted, fronts, lost, owner } = workers;
    const again = `${plural(lost, "time")} a front, ${plural(owner.restarts, "time")} the owner`;
    setText(
      this.title,
      `${integer(fronts.length)} of ${plural(wanted, "front process", "front processes")} connected; started again: ${again}`,
    );
    reconcile(
      this.rows,
      processRows(workers),
      ({ name }) => name,
      ({ name }) => this.row(name),
      updateProcess,
    );
  }
}

/**
 * The owner and all fronts that there should be, also those that are away.
 * @param {Workers} workers
 * @returns {ProcessRow[]}
 */
function processRows({ wanted, fronts, lost_fronts, owner }) {
  const rows = [...Array(wanted).keys()].map((number) => {
    const there = fronts.find(({ front }) => front === number);
    return {
      name: `front ${number}`,
      pid: there?.pid ?? null,
      connections: there?.connections ?? null,
      in_flight: there?.in_flight ?? null,
      ends: lost_fronts.find(({ front }) => front === number) ?? NEVER_ENDED,
    };
  });
  return [{ name: "owner", pid: owner.pid, connections: null, in_flight: null, ends: owner }, ...rows];
}

/**
 * @param {HTMLElement} row
 * @param {ProcessRow} process
 */
function updateProcess(row, { pid, connections, in_flight, ends }) {
  const [state, id, open, busy, again, latest] = PROCESS_COLUMNS.map((label) => cellOf(row, label));
  showPill(state, pid === null ? "broken" : "safe", pid === null ? "not connected" : "runs");
  const orDash = (/** @type {number | null} */ value) => (value === null ? "–" : integer(value));
  setText(id, pid === null ? "–" : String(pid));
  setText(open, orDash(connections));
  setText(busy, orDash(in_flight));
  setText(again, plural(ends.restarts, "time"));
  setText(latest, ends.lately ? `${integer(ends.lately)} since ${time(ends.since)}` : "–");
}
