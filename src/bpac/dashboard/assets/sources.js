// Where the numbers come from: a gateway, or the page itself.

// An answer that is no answer; unreachable if there was none at all.
export class SourceError extends Error {
  constructor(message, { unreachable = false, signedOut = false, missing = false } = {}) {
    super(message);
    this.unreachable = unreachable;
    this.signedOut = signedOut;
    this.missing = missing;
  }
}

const PATIENCE = 15000;

export class Gateway {
  constructor(address) {
    this.live = true;
    this.address = address.replace(/\/$/, "");
  }

  async data(game) {
    return this.get(game === null ? "/data" : `/data?game=${game}`);
  }

  async decisions(query) {
    return this.get(`/decisions?${new URLSearchParams(query)}`);
  }

  async decision(id) {
    return this.get(`/decisions/${encodeURIComponent(id)}`);
  }

  async get(path) {
    let response;
    try {
      response = await fetch(this.address + path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    } catch {
      throw new SourceError("the gateway cannot be reached", { unreachable: true });
    }
    if (response.status === 401) throw new SourceError("you are signed out", { signedOut: true });
    let body = null;
    try {
      body = await response.json();
    } catch {
      throw new SourceError("the gateway's answer broke off", { unreachable: true });
    }
    if (response.ok) return body;
    throw new SourceError(body?.error?.message ?? `status ${response.status}`, {
      unreachable: response.status >= 500,
      missing: response.status === 404,
    });
  }
}

// A replay: all there is stands in the page.
export class Kept {
  constructor(data) {
    this.live = false;
    this.kept = data;
  }

  async data() {
    return this.kept;
  }

  async decisions(query) {
    const found = (this.kept.decisions ?? []).filter((decision) => fits(decision, query));
    const decisions = found.slice(0, query.limit);
    return { decisions, next: found.length > decisions.length ? decisions.at(-1).step : null };
  }

  async decision(id) {
    const found = (this.kept.decisions ?? []).find((decision) => decision.id === id);
    if (!found) throw new SourceError("this page does not keep it");
    return found;
  }
}

// As a gateway would choose them.
function fits(decision, query) {
  if (decision.game !== query.game || decision.step >= (query.before ?? Infinity)) return false;
  if (query.answered_by && decision.answered_by !== query.answered_by) return false;
  if (query.state && decision.state !== query.state) return false;
  if (query.min_uncertainty && decision.uncertainty < Number(query.min_uncertainty)) return false;
  if (query.max_uncertainty && decision.uncertainty > Number(query.max_uncertainty)) return false;
  if (!query.loss) return true;
  return decision.loss !== null && decision.loss > 0 === (query.loss === "some");
}
