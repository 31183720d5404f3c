"""The page ``/metrics``: all metrics in the text format of Prometheus, each with a HELP and a TYPE line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby

from bpac.errors import MissingExtra
from bpac.gateway.games.shown.status import GameStatus
from bpac.gateway.health.model_health import ModelHealth
from bpac.gateway.telemetry.metrics.counters import BOUNDS, COUNTERS, Metrics
from bpac.gateway.telemetry.metrics.game_metrics import EPISODES_AND_SWITCHES, GAMES, SHARED_GAMES

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtra("prometheus-client", "gateway") from error


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
        for name, (value_of, description) in (GAMES | EPISODES_AND_SWITCHES | SHARED_GAMES).items():
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
