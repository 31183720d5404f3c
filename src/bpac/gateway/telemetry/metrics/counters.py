"""Metrics of a gateway: counters and durations since the process started.

They are plain numbers in dictionaries, because they change with every request; ``prometheus_text`` turns them into
Prometheus's format when they are read.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

# Upper bounds of the buckets of durations, in seconds.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

# Every counter, with its description for operators.
COUNTERS: Mapping[str, str] = {
    "bpac_answers_total": "Answers served to callers, by the model that wrote them.",
    "bpac_archive_failures_total": "How often old entries of a game could not be archived; Redis keeps them.",
    "bpac_archived_entries_total": "Journal entries that this gateway moved from Redis to archives.",
    "bpac_caller_tickets_total": "Tickets of callers that ask their models themselves, by what became of them.",
    "bpac_deployment_answers_total": "Answers of each deployment of a model that has several.",
    "bpac_following_fallbacks_total": "Later requests of a draft's episode that the expert answered: the draft failed.",
    "bpac_following_total": "Later requests of episodes, which followed the decision of the first, by who answered.",
    "bpac_http_refused_total": "Requests rejected by a limit or a check before they reached a model, by reason.",
    "bpac_impossible_drafts_total": "Drafts that cannot be what was asked for and so have uncertainty 1, by reason.",
    "bpac_journal_losses_total": "Journals that lacked acknowledged entries when the store was opened, by game.",
    "bpac_store_failures_total": "How often the store failed, so that no request could be answered.",
    "bpac_outage_drafts_total": "Drafts served on the last threshold while Redis was gone; their losses are not known.",
    "bpac_outside_total": "Requests answered outside the games: forced, of a route with one model, or passed through.",
    "bpac_prompt_features_missing_total": "Requests whose prompt was not embedded for a learned score, by reason.",
    "bpac_reloads_total": "Reloads of the configuration, by result (ok, failed).",
    "bpac_score_changes_total": "How often score = auto became another score, because drafts cannot have the old one.",
    "bpac_stage_answers_total": "Answers served to callers of cascades, by the stage and model that wrote them.",
    "bpac_turned_away_total": "Requests rejected with status 429 because max_in_flight others were in progress.",
    "bpac_upkeep_failures_total": "How often work of the gateway beside its requests failed, by work.",
    "bpac_upstream_failures_total": "Failed attempts to get an answer from a model server, by kind of failure.",
    "bpac_without_store_total": "Requests that are no rounds, because Redis, which gives out tickets, was gone.",
    "bpac_worker_faults_total": "Connections between processes of the gateway that were ended by a fault, by fault.",
    "bpac_workers_lost_total": "Processes of the gateway that ended and were started again (front, owner).",
    "bpac_upstream_statuses_total": "Failed attempts that a model server answered with an error, by HTTP status.",
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters and durations since the process started.

    >>> metrics = Metrics()
    >>> metrics.count("bpac_answers_total", route="homework", answered_by="draft")
    >>> metrics.counts
    {('bpac_answers_total', (('route', 'homework'), ('answered_by', 'draft'))): 1}
    """

    def __init__(self) -> None:
        # By name and labels.
        self.counts: dict[tuple[str, Labels], int] = {}
        # By route and stage: the number of durations in each bucket, and last the sum of all of them.
        self.durations: dict[tuple[str, str], list[float]] = {}

    def count(self, name: str, *, by: int = 1, **labels: str) -> None:
        """Add 1, or another number, to a counter; with 0 it is shown before anything is counted."""
        key = (name, tuple(labels.items()))
        try:
            self.counts[key] += by
        except KeyError:
            if name not in COUNTERS:
                raise ValueError(f"{name} has no description: add it to COUNTERS") from None
            self.counts[key] = by

    def value(self, name: str, **labels: str) -> int:
        """What was counted so far, with these labels in the order in which they are counted."""
        return self.counts.get((name, tuple(labels.items())), 0)

    def time(self, stage: str, route: str, seconds: float) -> None:
        """Record how long a stage of a request took."""
        key = (route, stage)
        cells = self.durations.get(key)
        if cells is None:
            cells = self.durations[key] = [0.0] * (len(BOUNDS) + 2)
        cells[bisect_left(BOUNDS, seconds)] += 1
        cells[-1] += seconds

    def add_times(self, stage: str, route: str, cells: Sequence[float]) -> None:
        """Add durations that were recorded elsewhere: their number in each bucket, and last their sum."""
        known = self.durations.setdefault((route, stage), [0.0] * (len(BOUNDS) + 2))
        for index, value in enumerate(cells[: len(known)]):
            known[index] += value

    def times(self, route: str) -> dict[str, list[float]]:
        """For each stage of a route, the number of durations in each bucket and last the sum of all of them."""
        return {stage: list(cells) for (name, stage), cells in self.durations.items() if name == route}
