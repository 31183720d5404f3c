"""The command ``status``: the state of every game in a gateway's store."""

import argparse
import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bpac.cli.live_status import live_lines, live_status
from bpac.cli.output import add_json_option, counted, print_report
from bpac.dashboard.replicas import outside_text
from bpac.gateway.config.file import Config, load_config
from bpac.gateway.games.money.savings import Prices, SavingsReport
from bpac.gateway.games.restoring.restoring import folded, has_entries
from bpac.gateway.games.shown.status import GameStatus, game_status
from bpac.gateway.games.shown.troubles import NOT_ROUTING
from bpac.stores import open_store
from bpac.stores.store import Game, Store

FINE = 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    status = commands.add_parser(
        "status", help="show threshold, expert calls, loss and savings of each route, whether the gateway runs or not"
    )
    status.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    add_json_option(status)
    status.set_defaults(run=_status)


def _status(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    with closing(open_store(config.store, read_only=True)) as store:
        games = [status_of(store, game, config) for game in current_games(store)]
        losses = store.losses()
    lines = [f"LOST: {loss}; a new game begins with a threshold of 0" for loss in losses]
    live = live_status(options.config) or {}
    lines += live_lines(live)
    lines += [line for status in games for line in _text(status)]
    report = {
        "models": live.get("models", {}),
        "store": live.get("store"),
        "warnings": live.get("warnings", []),
        "games": [{"route": status.route, **status.to_json()} for status in games],
        "losses": [loss._asdict() for loss in losses],
    }
    if "workers" in live:
        report["workers"] = live["workers"]
    print_report(options, report, lines or ["no route has had a request yet"])
    return FINE


def current_games(store: Store) -> list[Game]:
    """The latest game of every segment of every route that has begun."""
    # A gateway that is just starting has opened a game before it writes to its journal.
    begun = (game for game in store.games() if has_entries(store, game))
    return list({(game.route, game.segment): game for game in begun}.values())


def status_of(store: Store, game: Game, config: Config) -> GameStatus:
    """Where a game stands, as its journal says.

    Parameters
    ----------
    store, game: where the journal is.
    config: the configuration, for prices and names of models.
    """
    kept = folded(store, game)
    route = config.routes_with_games.get(game.route)
    prices = None if route is None else Prices.of(route)
    names = [model.name for model in route.models] if route is not None else []
    status = game_status(game, kept.router, kept.history, kept.savings.report(prices), models=names)
    sharing = getattr(store, "sharing", None)  # only games in Redis are shared
    return status if sharing is None else replace(status, shared=sharing(game))


def _text(status: GameStatus) -> Iterator[str]:
    """The state of a game in a few lines."""
    summary, unscored = status.summary, status.unscored
    name = f"{status.route} {status.segment}".strip()
    state = f"{_state(status)}, threshold {summary.threshold:.4g}"
    if summary.steps:
        rate = "–" if summary.expert_call_rate is None else f"{summary.expert_call_rate:.1%}"
        rounds = counted(summary.steps, "round")
        if status.unit == "episode":
            rounds += " (a round is an episode)"
        certificate, best = summary.certificate, summary.best_average_upper
        sure = f"{certificate.confidence:.0%} confidence" + ("" if best is None else f", at best {best:.2%}")
        yield (
            f"{name}: {rounds}, {state}, expert calls {rate}, {summary.owed} waiting for their outcome, "
            f"average loss per {status.unit} ≤ {certificate.average_upper:.2%} ({sure})"
        )
    else:
        yield f"{name}: no request decided yet, {state}"
    yield from _terms_text(status.score, status.shared)
    if status.switch is not None:
        yield f"  may the new model replace the old one? {status.switch.text}"
    for trouble in status.troubles:
        yield f"  {trouble.what}: {trouble.cost}. What to do: {trouble.remedy}"
    if status.stages and status.cost is not None:
        answered = ", ".join(f"{stage['model']} {stage['share']:.1%}" for stage in status.stages)
        cost = f"{status.cost['mean']:.4g}, always asking the last model: {status.cost['always']:.4g}"
        yield f"  answered by {answered}; cost per request in units of call_prices: {cost}"
    if unscored.requests:
        reasons = ", ".join(f"{count} {reason}" for reason, count in unscored.reasons.items())
        yield f"  answered by the expert because the draft had no score: {unscored.share:.1%} ({reasons})"
    yield from _learned_text(status)
    if summary.refused:
        refused = f"{summary.refused} ({status.refusals.share:.1%} of the requests sent to it)"
        reasons = "; ".join(f"{count} × {reason}" for reason, count in status.refusals.reasons.items())
        yield f"  refused by the expert: {refused}: {reasons}"
    if summary.forfeits:
        causes = ", ".join(f"{count} {cause}" for cause, count in sorted(summary.forfeits.items()))
        share = summary.forfeit_share
        yield f"  audits without a verdict: {causes}; of the latest audits of accepted drafts {share:.1%}"
    if summary.steps or status.savings.tokens_saved:  # drafts without a score cost tokens, too
        yield from _savings_text(status.savings)


def _learned_text(status: GameStatus) -> Iterator[str]:
    """The scores that were learned on the way."""
    if len(status.scores) == 1 and status.summary.steps:
        yield "  learned score: none yet, it needs more audits"
    for score in status.scores:
        if score.rounds is not None and not score.share:
            yield (
                f"  learned score {score.score}: none, because a model of {score.rounds} audits after round "
                f"{score.since_step} would accept only {score.estimated_gain:.0%} more requests; its share of α went "
                "back to the score of the route"
            )
        elif score.rounds is not None:
            used = f"accepts {score.accepted:.1%} of the latest requests, {'' if score.in_force else 'not '}in force"
            if score.retired:
                used = "retired, because the score in force is at least as good"
            together = " of all segments" if score.shared else ""
            yield (
                f"  learned score {score.score}: fitted to {score.rounds} audits{together} after round "
                f"{score.since_step}, {used}"
            )


def _terms_text(score: str, shared: Mapping[str, Any] | None) -> Iterator[str]:
    """The score that a game is about, and who shares it in Redis."""
    if score:
        yield f"  score: {score}"
    if shared is not None:
        by = f"folded by {shared['folder']}" if shared["folder"] else "folded by none"
        yield f"  gateways that share it: {shared['replicas']}, {by}; rounds not in the journal yet: {shared['lag']}"
        speed = shared["entries_per_second"]
        if speed is not None:
            yield f"  journal: {shared['entries']:,} entries; the latest came at {speed:,.1f} per second"
        yield from outside_text(shared["outside"])


def _state(status: GameStatus) -> str:
    if any(trouble.what.startswith(NOT_ROUTING) for trouble in status.troubles):
        return NOT_ROUTING
    return status.state.replace("_", " ")


def _savings_text(savings: SavingsReport) -> Iterator[str]:
    """What was saved and spent, in a few lines."""
    sums = {
        "tokens": (savings.tokens_saved, savings.tokens_saved_at_least, savings.tokens_saved_at_most),
        "money": (savings.money_saved, savings.money_saved_at_least, savings.money_saved_at_most),
    }
    shares = {"tokens": savings.share_saved_at_least, "money": savings.money_share_saved_at_least}
    for what, (estimate, least, most) in sums.items():
        if estimate is None or least is None:
            continue
        shown = partial(_money, currency=savings.currency) if what == "money" else "{:,.0f}".format
        above = "" if most is None else f", at most {shown(most)}"
        if most is not None and savings.longest_answer_assumed is not None:
            above += f" if no answer is longer than {savings.longest_answer_assumed:,.0f} tokens"
            if what == "money" and savings.longest_prompt_assumed is not None:
                above += f" and no prompt longer than {savings.longest_prompt_assumed:,.0f}"
        share = "" if shares[what] is None else f" ({shares[what]:.1%} of always asking the expert)"
        yield (
            f"  {what} saved: at least {shown(least)} with {savings.confidence:.0%} confidence{share}, "
            f"estimated {shown(estimate)}{above}"
        )
    yield from _spending_text(savings)
    if (followed := savings.followed) is not None:
        by = f"{followed['by_draft']:,} by the draft's model, {followed['by_expert']:,} by the expert"
        spent = followed["draft"]["completion_tokens"] + followed["expert"]["completion_tokens"]
        yield (
            f"  later requests of episodes: {followed['requests']:,} ({by}), {spent:,} generated tokens, which are in "
            f"none of the sums above; the expert was spared about {followed['expert_tokens_spared']:,.0f} by them"
        )


def _spending_text(savings: SavingsReport) -> Iterator[str]:
    if savings.money_spent is not None and savings.money_saved is not None:
        costs = "; so far this route costs money" if savings.money_saved < 0.0 else ""
        always = f"always asking the expert: {_money(savings.always_money or 0.0, savings.currency)}"
        yield f"  money spent: {_money(savings.money_spent, savings.currency)}, {always}{costs}"
    if savings.money_covers == "output":
        yield (
            "  money is that of generated tokens only: give price = { input, output } of every model of the route to "
            "count prompts, too"
        )
    estimated = sum(usage["estimated_tokens"] for usage in savings.usage.values())
    if estimated:
        yield f"  estimated tokens, because a server did not count them: {estimated:,}"
    if savings.prompts_unknown:
        without = f"{savings.prompts_unknown:,}"
        yield f"  expert answers without a count of prompt tokens, which count as nothing saved: {without}"


def _money(amount: float, currency: str | None) -> str:
    """A sum of money with two decimals, or with two digits if it is small: the first requests cost little.

    >>> _money(-1234.5, "EUR"), _money(-0.00786, "EUR"), _money(0.0, "")
    ('-1,234.50 EUR', '-0.0079 EUR', '0.00')
    """
    small = 0.0 < abs(amount) < 1.0
    digits = max(2, 1 - math.floor(math.log10(abs(amount)))) if small else 2
    return f"{amount:,.{digits}f} {currency or ''}".rstrip()
