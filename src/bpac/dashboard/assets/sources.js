// Where the document comes from: a gateway, or the page itself.

/** @import { DashboardDocument, DataSource, Decision, DecisionPage, DecisionQuery, GameListQuery } from "./types.js" */

const TIMEOUT_MS = 15000;
export const GAMES_PER_PAGE = 100;

// A document or a decision that could not be had, and why.
export class SourceError extends Error {
  /**
   * @param {string} message
   * @param {{ unreachable?: boolean, signedOut?: boolean, missing?: boolean }} reason
   */
  constructor(message, { unreachable = false, signedOut = false, missing = false } = {}) {
    super(message);
    this.unreachable = unreachable;
    this.signedOut = signedOut;
    this.missing = missing;
  }
}

/** @implements {DataSource} */
export class GatewaySource {
  /** @param {string} address of the dashboard */
  constructor(address) {
    this.live = true;
    this.address = address.replace(/\/$/, "");
  }

  /**
   * @param {number | null} game null for all
   * @param {GameListQuery} list which games are listed, if all are wanted
   * @returns {Promise<DashboardDocument>}
   */
  async data(game, list = {}) {
    if (game !== null) return this.get(`/data?game=${game}`);
    const wanted = Object.entries({ sort: "urgency", limit: String(GAMES_PER_PAGE), ...list }).filter(
      ([, value]) => value,
    );
    return this.get(`/data?${new URLSearchParams(wanted)}`);
  }

  /**
   * @param {DecisionQuery} query
   * @returns {Promise<DecisionPage>}
   */
  async decisions(query) {
    const parameters = Object.entries(query).map(([name, value]) => [name, String(value)]);
    return this.get(`/decisions?${new URLSearchParams(parameters)}`);
  }

  /**
   * @param {string} id
   * @returns {Promise<Decision>}
   */
  async decision(id) {
    return this.get(`/decisions/${encodeURIComponent(id)}`);
  }

  /** @param {string} path */
  async get(path) {
    let response;
    try {
      response = await fetch(this.address + path, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch {
      throw new SourceError("the gateway cannot be reached", { unreachable: true });
    }
    if (response.status === 401) throw new SourceError("you are signed out", { signedOut: true });
    let body = null;
    try {
      body = await response.json();
    } catch {
      throw new SourceError("the gateway's response is incomplete", { unreachable: true });
    }
    if (response.ok) return body;
    throw new SourceError(body?.error?.message ?? `the gateway responded with status ${response.status}`, {
      unreachable: response.status >= 500,
      missing: response.status === 404,
    });
  }
}

/** @implements {DataSource} */
export class ReplaySource {
  /** @param {DashboardDocument} document of the page */
  constructor(document) {
    this.live = false;
    this.document = document;
  }

  async data() {
    return this.document;
  }

  /**
   * @param {DecisionQuery} query
   * @returns {Promise<DecisionPage>}
   */
  async decisions(query) {
    const found = (this.document.decisions ?? []).filter((decision) => matches(decision, query));
    const decisions = found.slice(0, query.limit);
    return { decisions, next: found.length > decisions.length ? decisions[decisions.length - 1].step : null };
  }

  /**
   * @param {string} id
   * @returns {Promise<Decision>}
   */
  async decision(id) {
    const found = (this.document.decisions ?? []).find((decision) => decision.id === id);
    if (!found) throw new SourceError("this page does not contain it");
    return found;
  }
}

/**
 * Whether a decision matches a query, by the rules of the gateway.
 * @param {Decision} decision
 * @param {DecisionQuery} query
 */
function matches(decision, query) {
  if (decision.game !== query.game || decision.step >= (query.before ?? Infinity)) return false;
  if (query.answered_by && decision.answered_by !== query.answered_by) return false;
  if (query.state && decision.state !== query.state) return false;
  if (query.min_uncertainty && decision.uncertainty < Number(query.min_uncertainty)) return false;
  if (query.max_uncertainty && decision.uncertainty > Number(query.max_uncertainty)) return false;
  if (!query.loss) return true;
  return decision.loss !== null && decision.loss > 0 === (query.loss === "some");
}
