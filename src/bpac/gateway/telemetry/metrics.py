"""Measurements, in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts and durations since the process started.

    >>> metrics = Metrics()
    >>> metrics.count("bpac_answers_total", route="homework", answered_by="draft")
    >>> list(metrics.lines())[1]
    'bpac_answers_total{route="homework",answered_by="draft"} 1'
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._times: dict[tuple[str, Labels], list[float]] = {}

    def count(self, name: str, **labels: str) -> None:
        """Count one more."""
        self._counts[name, tuple(labels.items())] += 1

    def time(self, stage: str, route: str, seconds: float) -> None:
        """Take in how long a stage of a request took."""
        key = ("bpac_seconds", (("route", route), ("stage", stage)))
        cells = self._times.get(key)
        if cells is None:
            cells = self._times[key] = [0.0] * (len(BOUNDS) + 2)
        cells[bisect_left(BOUNDS, seconds)] += 1
        cells[-1] += seconds

    def times(self, route: str) -> dict[str, list[float]]:
        """By stage of a route: how many took at most each bound, and no less than the one before; last, all seconds."""
        return {labels[1][1]: list(cells) for (_, labels), cells in self._times.items() if labels[0][1] == route}

    def lines(self) -> Iterator[str]:
        """All of it, line by line."""
        named = ""
        for (name, labels), count in sorted(self._counts.items()):
            if name != named:
                yield f"# TYPE {name} counter"
                named = name
            yield f"{name}{_labels(labels)} {count}"
        if self._times:
            yield "# TYPE bpac_seconds histogram"
        for (name, labels), cells in sorted(self._times.items()):
            total = 0.0
            for bound, cell in zip((*map(str, BOUNDS), "+Inf"), cells[:-1], strict=True):
                total += cell
                yield f"{name}_bucket{_labels((*labels, ('le', bound)))} {total:g}"
            yield f"{name}_sum{_labels(labels)} {cells[-1]:.9g}"
            yield f"{name}_count{_labels(labels)} {total:g}"


def route_lines(route: str, games: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """What the summaries of a route's games say, as triples of name, kind and line."""
    games = list(games)
    yield from _requests_that_are_no_rounds(route, games)
    for game in games:
        labels: Labels = (("route", route), ("segment", game["segment"]))
        certificate, savings = game["certificate"], game["savings"]
        values: dict[tuple[str, str], float | None] = {
            ("bpac_rounds_total", "counter"): game["steps"],
            ("bpac_expert_calls_total", "counter"): game["expert_calls"],
            ("bpac_threshold", "gauge"): game["threshold"],
            ("bpac_open_rounds", "gauge"): game["owed"],
            ("bpac_epoch", "gauge"): game["epoch"],
            ("bpac_alarm", "gauge"): game["alarm"],
            ("bpac_doubt", "gauge"): game["doubt"],
            ("bpac_forfeit_share", "gauge"): game["forfeit_share"],
            ("bpac_certificate_average_upper", "gauge"): certificate["average_upper"],
            ("bpac_certificate_upper", "gauge"): certificate["upper"],
            ("bpac_certificate_lower", "gauge"): certificate["lower"],
            ("bpac_draft_tokens_total", "counter"): savings["draft_tokens"],
            ("bpac_expert_tokens_total", "counter"): savings["expert_tokens"],
            ("bpac_judge_tokens_total", "counter"): savings["judge_tokens"],
            ("bpac_tokens_saved", "gauge"): savings["tokens_saved"],
            ("bpac_tokens_saved_at_least", "gauge"): savings["tokens_saved_at_least"],
            ("bpac_tokens_saved_at_most", "gauge"): savings["tokens_saved_at_most"],
            ("bpac_money_saved", "gauge"): savings.get("money_saved"),
            ("bpac_money_saved_at_least", "gauge"): savings.get("money_saved_at_least"),
            ("bpac_money_saved_at_most", "gauge"): savings.get("money_saved_at_most"),
        }
        for (name, kind), value in values.items():
            if value is not None:
                yield name, kind, f"{name}{_labels(labels)} {value:.12g}"
        for cause, count in sorted(game["forfeits"].items()):
            name = "bpac_forfeits_total"
            yield name, "counter", f"{name}{_labels((*labels, ('cause', cause)))} {count}"


def _requests_that_are_no_rounds(route: str, games: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Requests without a score and requests that the expert refused, over all games of a route."""
    reasons: Counter[str] = Counter()
    refused = 0
    for game in games:
        reasons.update(game["unscored"]["reasons"])
        refused += game["refused"]
    for reason, count in sorted(reasons.items()):
        name = "bpac_unscored_total"
        yield name, "counter", f"{name}{_labels((('route', route), ('reason', reason)))} {count}"
    name = "bpac_refused_total"
    yield name, "counter", f"{name}{_labels((('route', route),))} {refused}"


def exposition(
    metrics: Metrics, summaries: Mapping[str, Iterable[Mapping[str, Any]]], in_flight: int, connections: int = 0
) -> str:
    """The page that Prometheus reads.

    Parameters
    ----------
    metrics: counts and durations.
    summaries: of the games of each route.
    in_flight: requests under way, and audits behind them.
    connections: open connections of callers.
    """
    families: dict[tuple[str, str], list[str]] = {}
    for route, games in summaries.items():
        for name, kind, line in route_lines(route, games):
            families.setdefault((name, kind), []).append(line)
    lines = []
    for (name, kind), family in families.items():
        lines += [f"# TYPE {name} {kind}", *family]
    lines += metrics.lines()
    for name, value in (("bpac_connections", connections), ("bpac_in_flight", in_flight)):
        lines += [f"# TYPE {name} gauge", f"{name} {value}"]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
