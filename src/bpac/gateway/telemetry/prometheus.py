"""The page ``/metrics``: all metrics in the text format of Prometheus, each with a HELP and a TYPE line."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, groupby

from bpac.errors import MissingExtra
from bpac.gateway.games.status import GameStatus
from bpac.gateway.health.model_health import ModelHealth
from bpac.gateway.telemetry.counters import BOUNDS, COUNTERS, Metrics

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtra("prometheus-client", "gateway") from error


def _spent(whose: str, kind: str) -> Callable[[GameStatus], float]:
    return lambda game: game.savings.usage[whose][f"{kind}_tokens"]


def _followed(whose: str) -> Callable[[GameStatus], float | None]:
    def tokens(game: GameStatus) -> float | None:
        if game.savings.followed is None:
            return None if game.unit == "request" else 0.0
        return float(game.savings.followed[whose]["completion_tokens"])

    return tokens


# Metrics of every game, with the labels route and segment: the value, which may not be known, and the
# description for operators.
GAMES: dict[str, tuple[Callable[[GameStatus], float | None], str]] = {
    "bpac_rounds_total": (
        lambda game: game.summary.steps,
        "Requests that the router decided: those whose draft had a score.",
    ),
    "bpac_expert_calls_total": (
        lambda game: game.summary.expert_calls,
        "Decided requests for which the expert was called.",
    ),
    "bpac_threshold": (
        lambda game: game.summary.threshold,
        "Drafts with an uncertainty below this are accepted (0 to 1; at 0 none is).",
    ),
    "bpac_open_rounds": (
        lambda game: game.summary.owed,
        "Decided requests that wait for their loss; each counts as loss 1 until it is known.",
    ),
    "bpac_epoch": (
        lambda game: game.summary.epoch,
        "Number of the current epoch: 1 plus the number of resets by the drift alarm.",
    ),
    "bpac_alarm": (
        lambda game: game.summary.alarm,
        "Level of the drift alarm: at 5 more drafts are audited, at 10000 the threshold starts again at 0.",
    ),
    "bpac_doubt": (
        lambda game: game.summary.doubt,
        "Level of the drift alarm if audits without a verdict count as losses: at 5 more drafts are audited.",
    ),
    "bpac_forfeit_share": (
        lambda game: game.summary.forfeit_share,
        "Share (0 to 1) without a verdict among about the last 100 audits of accepted drafts.",
    ),
    "bpac_exploration_rate": (
        lambda game: game.summary.exploration_rate,
        "Probability (0 to 1) with which an accepted draft is audited at the moment.",
    ),
    "bpac_expert_busy": (
        lambda game: float(game.summary.expert_busy),
        "Whether the expert is busy (1), so that audits are made at the least rate (busy_at), or not (0).",
    ),
    "bpac_learned_score_in_force": (
        lambda game: float(any(score.in_force and score.score > 0 for score in game.scores)) if game.scores else None,
        "Whether a score that was learned on the way decides (1), or the score of the route (0).",
    ),
    "bpac_learned_score_accepted_share": (
        lambda game: max((s.accepted for s in game.scores if s.score > 0), default=0.0) if game.scores else None,
        "Share (0 to 1) of the latest 256 requests that the certified threshold of a learned score accepts.",
    ),
    "bpac_certificate_average_upper": (
        lambda game: game.summary.certificate.average_upper,
        "Upper confidence bound on the average loss per request (0 to 1) served so far.",
    ),
    "bpac_certificate_upper": (
        lambda game: game.summary.certificate.upper,
        "Upper confidence bound on the sum of the losses of all requests served so far.",
    ),
    "bpac_certificate_lower": (
        lambda game: game.summary.certificate.lower,
        "Lower confidence bound on the sum of the losses of all requests served so far.",
    ),
    "bpac_switch_answer": (
        lambda game: None if game.switch is None else {"yes": 1.0, "not_yet": 0.0, "no": -1.0}[game.switch.answer],
        "Whether the new model may replace the old one (score = none): 1 yes, 0 not yet, -1 no.",
    ),
    "bpac_switch_loss_at_least": (
        lambda game: None if game.switch is None else game.switch.at_least,
        "Lower confidence bound on the mean loss (0 to 1) of the new model against the old one (score = none).",
    ),
    "bpac_switch_loss_at_most": (
        lambda game: None if game.switch is None else game.switch.at_most,
        "Upper confidence bound on the mean loss (0 to 1) of the new model against the old one (score = none).",
    ),
    "bpac_open_sessions": (
        lambda game: None if game.sessions is None else game.sessions["open"],
        "Sticky sessions whose next request follows the decision of their first.",
    ),
    "bpac_sessions_forgotten_total": (
        lambda game: None if game.sessions is None else game.sessions["forgotten"],
        "Sticky sessions that were forgotten because there were more than 100000: they begin another episode.",
    ),
    "bpac_followed_requests_total": (
        lambda game: None if game.unit == "request" else (game.savings.followed or {"requests": 0})["requests"],
        "Later requests of episodes since the game began; their tokens are in none of the other metrics of games.",
    ),
    **{
        f"bpac_followed_{whose}_tokens_total": (_followed(whose), f"Tokens generated in later requests by the {whose}.")
        for whose in ("draft", "expert")
    },
    "bpac_draft_tokens_total": (lambda game: game.savings.draft_tokens, "Tokens generated for drafts."),
    "bpac_expert_tokens_total": (lambda game: game.savings.expert_tokens, "Tokens generated by the expert."),
    "bpac_judge_tokens_total": (lambda game: game.savings.judge_tokens, "Tokens generated by the judge."),
    **{
        f"bpac_{whose}_{kind}_tokens_total": (_spent(whose, kind), f"{described} (by {whose} calls).")
        for whose in ("draft", "expert", "judge")
        for kind, described in {
            "prompt": "Tokens of prompts, cached ones included",
            "cached": "Tokens of prompts that the server took from its cache",
            "estimated": "Tokens that are estimated from above because the server did not count them",
        }.items()
    },
    "bpac_tokens_saved": (
        lambda game: game.savings.tokens_saved,
        "Estimated tokens saved against always calling the expert, tokens of drafts and judges deducted.",
    ),
    "bpac_tokens_saved_at_least": (
        lambda game: game.savings.tokens_saved_at_least,
        "Lower 95% confidence bound on the tokens saved.",
    ),
    "bpac_tokens_saved_at_most": (
        lambda game: game.savings.tokens_saved_at_most,
        "Upper 95% confidence bound on the tokens saved.",
    ),
    "bpac_share_saved": (
        lambda game: game.savings.share_saved,
        "Estimated tokens saved as a share of those of always calling the expert; negative if drafts cost more.",
    ),
    "bpac_share_saved_at_least": (
        lambda game: game.savings.share_saved_at_least,
        "Lower 95% confidence bound on the share of tokens saved.",
    ),
    "bpac_money_saved": (
        lambda game: game.savings.money_saved,
        "Estimated money saved against always calling the expert, in the currency of the configured prices.",
    ),
    "bpac_money_saved_at_least": (
        lambda game: game.savings.money_saved_at_least,
        "Lower 95% confidence bound on the money saved.",
    ),
    "bpac_money_saved_at_most": (
        lambda game: game.savings.money_saved_at_most,
        "Upper 95% confidence bound on the money saved.",
    ),
    "bpac_money_share_saved": (
        lambda game: game.savings.money_share_saved,
        "Estimated money saved as a share of the cost of always calling the expert; negative if it costs more.",
    ),
    "bpac_money_share_saved_at_least": (
        lambda game: game.savings.money_share_saved_at_least,
        "Lower 95% confidence bound on the share of money saved.",
    ),
    "bpac_money_spent_total": (
        lambda game: game.savings.money_spent,
        "Money spent on drafts, expert and judge, at the configured prices.",
    ),
}
# Metrics of the games that several gateways share.
SHARED_GAMES: dict[str, tuple[Callable[[GameStatus], float | None], str]] = {
    "bpac_folding": (
        lambda game: None if game.shared is None else float(game.shared["folding"]),
        "Whether this gateway folds the shared game, so that it publishes thresholds (1 or 0).",
    ),
    "bpac_unfolded_rounds": (
        lambda game: None if game.shared is None else game.shared["lag"],
        "Rounds of a shared game that are decided and not yet in its journal, as far as this gateway knows.",
    ),
    "bpac_replicas": (
        lambda game: None if game.shared is None else game.shared["replicas"],
        "Gateways that share the game, as far as this gateway knows.",
    ),
}


class _Page(Collector):
    """Everything that can be measured, at one moment."""

    def __init__(
        self,
        metrics: Metrics,
        routes: Mapping[str, Iterable[GameStatus]],
        in_flight: int,
        connections: int,
        models: Mapping[str, ModelHealth],
        *,
        warnings: Mapping[str, int],
    ) -> None:
        self._metrics = metrics
        self._games = {route: list(games) for route, games in routes.items()}
        self._in_flight = in_flight
        self._connections = connections
        self._models = models
        self._warnings = warnings

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        yield from self._of_games()
        yield from self._of_routes()
        yield from self._counters()
        yield self._durations()
        if self._models:
            up = GaugeMetricFamily(
                "bpac_upstream_up", "Whether a model answers, as far as is known (1: yes, 0: no).", labels=["model"]
            )
            for name, health in sorted(self._models.items()):
                up.add_metric([name], float(health.ok))
            yield up
        yield GaugeMetricFamily("bpac_connections", "Open connections of callers.", self._connections)
        yield GaugeMetricFamily("bpac_in_flight", "Requests in progress, their audits included.", self._in_flight)

    def _of_games(self) -> Iterator[Metric]:
        for name, (value_of, description) in (GAMES | SHARED_GAMES).items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name, description, labels=["route", "segment"])
            for route, games in self._games.items():
                for game in games:
                    if (value := value_of(game)) is not None:
                        family.add_metric([route, game.segment], float(value))
            if family.samples:
                yield family

    def _of_routes(self) -> Iterator[Metric]:
        forfeits = CounterMetricFamily(
            "bpac_forfeits_total",
            "Audits that ended without a verdict and count as loss 1, by cause.",
            labels=["route", "segment", "cause"],
        )
        unscored = CounterMetricFamily(
            "bpac_unscored_total",
            "Requests whose draft had no score, so that the expert answered them, by reason.",
            labels=["route", "reason"],
        )
        refused = CounterMetricFamily(
            "bpac_refused_total", "Requests that only the expert's server refused, with a status 4xx.", labels=["route"]
        )
        refusals = CounterMetricFamily(
            "bpac_refusals_total",
            "Requests that only the expert's server refused, by HTTP status; /v1/status has the fields that it named.",
            labels=["route", "status"],
        )
        warnings = GaugeMetricFamily(
            "bpac_warnings",
            "Settings of a route that do not suit its traffic at present, such as a loss that cannot compare prose.",
            labels=["route"],
        )
        for route, games in self._games.items():
            reasons: Counter[str] = Counter()
            statuses: Counter[str] = Counter()
            for game in games:
                statuses.update(game.refusals.by_status())
                reasons.update(game.unscored.reasons)
                for cause, count in sorted(game.summary.forfeits.items()):
                    forfeits.add_metric([route, game.segment, cause], count)
            for reason, count in sorted(reasons.items()):
                unscored.add_metric([route, reason], count)
            refused.add_metric([route], sum(game.summary.refused for game in games))
            for status, count in sorted(statuses.items()):
                refusals.add_metric([route, status], count)
            warnings.add_metric([route], self._warnings.get(route, 0))
        yield from (family for family in (forfeits, unscored, refused, refusals, warnings) if family.samples)

    def _counters(self) -> Iterator[Metric]:
        for name, series in groupby(sorted(self._metrics.counts.items()), key=lambda item: item[0][0]):
            family = None
            for (_, labels), count in series:
                family = family or CounterMetricFamily(name, COUNTERS[name], labels=[label for label, _ in labels])
                family.add_metric([value for _, value in labels], count)
            if family is not None:
                yield family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            "bpac_seconds",
            "Duration of each stage of a request (draft, journal, expert, grading), in seconds.",
            labels=["route", "stage"],
        )
        bounds = (*map(str, BOUNDS), "+Inf")
        for labels, cells in sorted(self._metrics.durations.items()):
            family.add_metric(labels, list(zip(bounds, accumulate(cells[:-1]), strict=True)), cells[-1])
        return family


def prometheus_text(
    metrics: Metrics,
    routes: Mapping[str, Iterable[GameStatus]],
    in_flight: int,
    connections: int = 0,
    models: Mapping[str, ModelHealth] | None = None,
    *,
    warnings: Mapping[str, int] | None = None,
) -> str:
    """The page that Prometheus reads.

    Parameters
    ----------
    metrics: counters and durations.
    routes: the status of the games of each route.
    in_flight: requests in progress, their audits included.
    connections: open connections of callers.
    models: the health of each model (default: none is reported).
    warnings: the number of warnings about each route (default: none).
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page(metrics, routes, in_flight, connections, models or {}, warnings=warnings or {}))
    return generate_latest(registry).decode()
