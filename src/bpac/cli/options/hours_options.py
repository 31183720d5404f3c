"""Options of ``replay`` for hours in which the expert is cheap or busy."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bpac.hours import Hours
from bpac.replay.metrics import ReplayMetrics, mean_and_std
from bpac.replay.replay import Replay
from bpac.replay.simulation.expert_hours import ExpertHours


def add_hours_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    parser.add_argument(
        "--cheap-hours",
        metavar="HH:MM-HH:MM,…",
        help="hours of the day in which a call of the expert costs less, as in the route key cheap_hours: more audits "
        "are made in them, and the report has the cost of all expert calls with and without that (default: none)",
    )
    parser.add_argument(
        "--cheap-price",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="price of an expert call in these hours, as a share of the price in others (default: 0.5)",
    )
    parser.add_argument(
        "--busy-hours",
        metavar="HH:MM-HH:MM,…",
        help="hours of the day in which the expert is busy, so that audits are made at the least rate (default: none)",
    )
    parser.add_argument(
        "--queries-per-day",
        type=int,
        default=400,
        metavar="N",
        help="number of queries per day for --cheap-hours and --busy-hours, spread evenly (default: 400)",
    )


def chosen_hours(options: argparse.Namespace) -> ExpertHours | None:
    """The hours in which the expert is cheap or busy, as the options say."""
    cheap, busy = (
        tuple(Hours.read(hours) for hours in text.split(",")) if text else ()
        for text in (options.cheap_hours, options.busy_hours)
    )
    hours = ExpertHours(cheap, options.cheap_price, busy, options.queries_per_day)
    return hours if cheap or busy else None


def expert_costs(replay: Replay, metrics: list[ReplayMetrics]) -> dict[str, Any]:
    """What expert calls cost per query, for the report: with the hours known, and with them unknown to the router.

    Parameters
    ----------
    replay: the replay.
    metrics: the metrics of its runs.
    """
    if replay.hours is None:
        return {}
    unknown = replace(replay, hours=replace(replay.hours, known=False)).run_all()
    return {"expert_cost": _spread(metrics), "expert_cost_if_unknown": _spread(unknown)}


def expert_cost_line(report: Mapping[str, Any]) -> list[str]:
    """The line of a printed report, if there are hours."""
    if "expert_cost" not in report:
        return []
    known, unknown = report["expert_cost"]["mean"], report["expert_cost_if_unknown"]["mean"]
    change = f"{known / unknown - 1:+.1%} against {unknown:.4g}" if unknown else "as much as"
    return [f"  expert cost   {known:.4g} per query, in calls outside cheap hours ({change} if the hours are unknown)"]


def _spread(runs: list[ReplayMetrics]) -> dict[str, float] | None:
    return mean_and_std([run.expert_cost for run in runs if run.expert_cost is not None])
