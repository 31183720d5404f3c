// The tiles with the tokens and the money that a game has saved.

import { element, field, setAttribute, setField, setText } from "../dom.js";
import { money, percent, percentRoundedDown, tokens } from "../numbers.js";
import { Tile } from "./tile.js";

/** @import { Game, Savings } from "../types.js" */

export class TokensTile extends Tile {
  constructor() {
    super("Tokens saved", "savings.tokens_saved");
    this.bounds = new SavingsBounds("tokens_saved", tokens);
    this.exact = element("div", {}, "exact: the table has the tokens of every answer");
    this.negative = element("div", {}, "so far the drafts have cost more than they saved");
    this.prices = element(
      "div",
      {},
      "tokens of all models count alike here: for their prices see “Which model answered”",
    );
    this.share = new SavingsShare("share_saved", "of the tokens of always asking the expert");
    this.note.append(this.bounds.node, this.share.node, this.exact, this.negative, this.prices);
    this.used = {
      always_tokens: field("savings.always_tokens"),
      draft_tokens: field("savings.draft_tokens"),
      expert_tokens: field("savings.expert_tokens"),
      judge_tokens: field("savings.judge_tokens"),
    };
    this.list = element(
      "dl",
      { class: "facts" },
      fact("always asking the expert", this.used.always_tokens),
      fact("used by drafts", this.used.draft_tokens),
      fact("used by the expert", this.used.expert_tokens),
      fact("used by judges", this.used.judge_tokens),
    );
    this.append(this.list, "half");
  }

  /** @param {Game} game */
  update({ savings, stages }) {
    setField(this.value, savings?.tokens_saved, tokens(savings?.tokens_saved));
    setAttribute(this.note, "hidden", !savings);
    setAttribute(this.list, "hidden", !savings);
    if (!savings) return;
    const bounded = savings.tokens_saved_at_least !== undefined;
    setAttribute(this.bounds.node, "hidden", !bounded);
    setAttribute(this.exact, "hidden", bounded);
    const cascade = Boolean(stages?.length);
    setAttribute(this.negative, "hidden", cascade || savings.tokens_saved >= 0);
    setAttribute(this.prices, "hidden", !cascade);
    this.bounds.update(savings);
    this.share.update(savings);
    for (const name of /** @type {const} */ (["always_tokens", "draft_tokens", "expert_tokens", "judge_tokens"])) {
      setField(this.used[name], savings[name], tokens(savings[name]));
    }
  }
}

// Shown only where prices are configured.
export class MoneyTile extends Tile {
  constructor() {
    super("Money saved", "savings.money_saved");
    this.bounds = new SavingsBounds("money_saved", money);
    this.share = new SavingsShare("money_share_saved", "of the cost of always asking the expert");
    this.negative = element("div", {}, "so far this route costs money");
    this.currency = element("div");
    this.covers = element("div", {}, "generated tokens only: prompts have no price");
    this.estimated = element("div");
    this.note.append(this.bounds.node, this.share.node, this.negative, this.currency, this.covers, this.estimated);
    this.spent = field("savings.money_spent");
    this.always = field("savings.always_money");
    this.prompts = field("savings.usage.prompt_tokens");
    this.cached = field("savings.usage.cached_tokens");
    const list = element(
      "dl",
      { class: "facts" },
      fact("always asking the expert", this.always),
      fact("spent", this.spent),
      fact("prompt tokens", this.prompts),
      fact("of them cached", this.cached),
    );
    this.append(list, "half");
  }

  /** @param {Game} game */
  update({ savings }) {
    setAttribute(this.node, "hidden", savings?.money_saved === undefined);
    if (!savings) return;
    setField(this.value, savings.money_saved, money(savings.money_saved));
    this.bounds.update(savings);
    this.share.update(savings);
    setAttribute(this.negative, "hidden", (savings.money_saved ?? 0) >= 0);
    setText(this.currency, savings.currency ? `in ${savings.currency}` : "in the currency of the configured prices");
    setAttribute(this.covers, "hidden", savings.money_covers !== "output");
    setField(this.spent, savings.money_spent, money(savings.money_spent));
    setField(this.always, savings.always_money, money(savings.always_money));
    const models = Object.values(savings.usage ?? {});
    const prompts = models.reduce((sum, usage) => sum + usage.prompt_tokens, 0);
    const cached = models.reduce((sum, usage) => sum + usage.cached_tokens, 0);
    const estimated = models.reduce((sum, usage) => sum + usage.estimated_tokens, 0);
    setField(this.prompts, prompts, tokens(prompts));
    setField(this.cached, cached, tokens(cached));
    setAttribute(this.estimated, "hidden", estimated === 0);
    setText(this.estimated, `${tokens(estimated)} tokens are estimated, because a server did not count them`);
  }
}

// What was saved as a share; hidden while there is nothing to compare with.
class SavingsShare {
  /**
   * @param {"share_saved" | "money_share_saved"} name
   * @param {string} whole
   */
  constructor(name, whole) {
    this.name = name;
    this.value = field(`savings.${name}`);
    this.least = field(`savings.${name}_at_least`);
    this.node = element("div", {}, this.value, ", at least ", this.least, ` ${whole}`);
  }

  /** @param {Savings} savings */
  update(savings) {
    const value = savings[this.name] ?? null;
    const least = savings[`${this.name}_at_least`] ?? null;
    setAttribute(this.node, "hidden", value === null);
    setField(this.value, value, percent(value));
    setField(this.least, least, percentRoundedDown(least));
  }
}

// The bounds of an estimate; the upper one may be unknown.
class SavingsBounds {
  /**
   * @param {"tokens_saved" | "money_saved"} name
   * @param {(value: number | null | undefined) => string} text
   */
  constructor(name, text) {
    this.name = name;
    this.text = text;
    this.least = field(`savings.${name}_at_least`);
    this.most = field(`savings.${name}_at_most`);
    this.upper = element("span", {}, ", at most ", this.most);
    this.confidence = element("span");
    this.node = element("div", {}, "estimated; at least ", this.least, this.upper, this.confidence);
  }

  /** @param {Savings} savings */
  update(savings) {
    const least = savings[`${this.name}_at_least`];
    const most = savings[`${this.name}_at_most`] ?? null;
    setField(this.least, least, this.text(least));
    setField(this.most, most, this.text(most));
    setAttribute(this.upper, "hidden", most === null);
    setText(this.confidence, ` (${percent(savings.confidence)} confidence${most === null ? "" : " each"})`);
  }
}

/**
 * @param {string} name
 * @param {HTMLElement} value
 */
function fact(name, value) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, value));
}
