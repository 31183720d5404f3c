"""What the Grafana dashboard shows.

Metrics of games come from the journal and are the same on every replica that shares it, so panels show their maximum.
Counters of answers, failures and rejections belong to one process, so panels show their sum.
"""

from dataclasses import dataclass

ROUTE = 'route=~"$route"'
GAME = f'{ROUTE},segment=~"$segment"'
PER_GAME = "{{route}} {{segment}}"


@dataclass(frozen=True, slots=True)
class GrafanaPanel:
    """A panel of the dashboard.

    Parameters
    ----------
    title: its title.
    lines: what it shows: each legend with its query.
    about: how to read it.
    unit: Grafana's name of the unit (default: a plain number).
    kind: ``timeseries`` or ``stat``.
    logarithmic: whether its axis is logarithmic.
    """

    title: str
    lines: dict[str, str]
    about: str
    unit: str = "short"
    kind: str = "timeseries"
    logarithmic: bool = False


def _game(metric: str) -> str:
    return f"max by (route, segment) ({metric}{{{GAME}}})"


def _rate(metric: str, by: str, labels: str = ROUTE) -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}[5m]))"


def _quantile(share: float, stage: str) -> str:
    buckets = f'rate(bpac_seconds_bucket{{{ROUTE},stage="{stage}"}}[5m])'
    return f"histogram_quantile({share}, sum by (le) ({buckets}))"


ROWS: dict[str, list[GrafanaPanel]] = {
    "At a glance": [
        GrafanaPanel("Replicas up", {"up": 'sum(up{job="bpac"})'}, "Replicas that answer Prometheus.", kind="stat"),
        GrafanaPanel(
            "Requests in progress",
            {"in flight": "sum(bpac_in_flight)"},
            "On all replicas, audits included.",
            kind="stat",
        ),
        GrafanaPanel(
            "Models down",
            {"down": "count(min by (model) (bpac_upstream_up) == 0) or vector(0)"},
            "Models that do not answer on at least one replica.",
            kind="stat",
        ),
    ],
    "Service": [
        GrafanaPanel(
            "Answers per second",
            {"{{route}} by {{answered_by}}": _rate("bpac_answers_total", "route, answered_by")},
            "Drafts that were served, and answers of the expert.",
            "reqps",
        ),
        GrafanaPanel(
            "Requests in progress by replica",
            {"{{instance}}": "bpac_in_flight"},
            "Audits included. The autoscaler acts on it; at max_in_flight further requests get 429.",
        ),
        GrafanaPanel(
            "Open connections by replica", {"{{instance}}": "bpac_connections"}, "Those of the load balancer."
        ),
        GrafanaPanel(
            "Duration of the stages, median",
            {stage: _quantile(0.5, stage) for stage in ("draft", "journal", "expert", "grading")},
            "Callers wait for draft and journal, and for the expert where it is asked; never for grading.",
            "s",
        ),
        GrafanaPanel(
            "Duration of the stages, 99%",
            {stage: _quantile(0.99, stage) for stage in ("draft", "journal", "expert", "grading")},
            "The journal should stay below a few hundredths of a second.",
            "s",
        ),
        GrafanaPanel(
            "Rejected requests per second",
            {
                "{{reason}}": _rate("bpac_http_refused_total", "reason", ""),
                "{{route}}: too many in progress": _rate("bpac_turned_away_total", "route"),
            },
            "Rejected by a limit or a check, or with 429 because too many are in progress.",
            "reqps",
        ),
    ],
    "Promise": [
        GrafanaPanel(
            "Threshold",
            {PER_GAME: _game("bpac_threshold")},
            "Drafts with a lower uncertainty are served. 0 at the start and after a reset: the expert answers all.",
        ),
        GrafanaPanel(
            "Expert call rate",
            {
                PER_GAME: f"max by (route, segment) (rate(bpac_expert_calls_total{{{GAME}}}[5m]))"
                f" / max by (route, segment) (rate(bpac_rounds_total{{{GAME}}}[5m]))"
            },
            "Share of the decided requests for which the expert was called, audits included.",
            "percentunit",
        ),
        GrafanaPanel(
            "Exploration rate",
            {PER_GAME: _game("bpac_exploration_rate")},
            "Probability with which an accepted draft is audited.",
            "percentunit",
        ),
        GrafanaPanel(
            "Average actual loss, bounds",
            {
                f"{PER_GAME} at most": _game("bpac_certificate_average_upper"),
                f"{PER_GAME} at least": f"{_game('bpac_certificate_lower')} / {_game('bpac_rounds_total')}",
            },
            "At all times, each with confidence 1 − alpha. A lower bound above epsilon proves too much loss.",
            "percentunit",
        ),
        GrafanaPanel(
            "Drift alarm and doubt",
            {PER_GAME: _game("bpac_alarm"), f"{PER_GAME} doubt": _game("bpac_doubt")},
            "At 5 more drafts are audited; at 10,000 the threshold is reset. Doubt: missing verdicts are losses.",
            logarithmic=True,
        ),
        GrafanaPanel(
            "Epoch", {PER_GAME: _game("bpac_epoch")}, "1, and one more for each reset of the threshold by the alarm."
        ),
        GrafanaPanel(
            "Requests that wait for their loss",
            {PER_GAME: _game("bpac_open_rounds")},
            "Each counts as a loss of 1 until it is known.",
        ),
        GrafanaPanel(
            "Audits without a verdict",
            {PER_GAME: _game("bpac_forfeit_share")},
            "Among about the last 100 audits; each counts as a loss of 1.",
            "percentunit",
        ),
        GrafanaPanel(
            "Audits without a verdict, by cause",
            {"{{route}} {{cause}}": f"max by (route, cause) (increase(bpac_forfeits_total{{{GAME}}}[15m]))"},
            "In 15 minutes.",
        ),
    ],
    "Savings": [
        GrafanaPanel(
            "Tokens saved",
            {
                PER_GAME: _game("bpac_tokens_saved"),
                f"{PER_GAME} at least": _game("bpac_tokens_saved_at_least"),
                f"{PER_GAME} at most": _game("bpac_tokens_saved_at_most"),
            },
            "Estimate and 95% bounds, against always asking the expert. Drafts and judges are deducted.",
        ),
        GrafanaPanel(
            "Share of tokens and money saved",
            {
                f"{PER_GAME} tokens": _game("bpac_share_saved"),
                f"{PER_GAME} money": _game("bpac_money_share_saved"),
            },
            "Negative where a route costs more than always asking the expert.",
            "percentunit",
        ),
        GrafanaPanel(
            "Money spent per hour, and saved so far",
            {
                f"{PER_GAME} spent per hour": "3600 * max by (route, segment) "
                f"(rate(bpac_money_spent_total{{{GAME}}}[1h]))",
                f"{PER_GAME} saved": _game("bpac_money_saved"),
                f"{PER_GAME} saved at least": _game("bpac_money_saved_at_least"),
            },
            "In the currency of the prices; only for routes whose models all have a price.",
        ),
    ],
    "Models": [
        GrafanaPanel(
            "Model answers", {"{{model}}": "min by (model) (bpac_upstream_up)"}, "1: on all replicas. 0: not on all."
        ),
        GrafanaPanel(
            "Failed attempts per second",
            {"{{model}} {{kind}}": _rate("bpac_upstream_failures_total", "model, kind", "")},
            "Kinds: docs/faults.md.",
            "reqps",
        ),
        GrafanaPanel(
            "Error responses per second",
            {"{{model}} {{status}}": _rate("bpac_upstream_statuses_total", "model, status", "")},
            "By HTTP status.",
            "reqps",
        ),
        GrafanaPanel(
            "Requests without a score per second",
            {"{{route}} {{reason}}": f"max by (route, reason) (rate(bpac_unscored_total{{{ROUTE}}}[5m]))"},
            "The expert answers them, so nothing is saved.",
            "reqps",
        ),
        GrafanaPanel(
            "Refused by the expert per second",
            {"{{route}} {{status}}": f"max by (route, status) (rate(bpac_refusals_total{{{ROUTE}}}[5m]))"},
            "Refusals neither raise nor lower the threshold on average.",
            "reqps",
        ),
        GrafanaPanel(
            "Warnings about settings",
            {"{{route}}": f"max by (route) (bpac_warnings{{{ROUTE}}})"},
            "Settings that do not suit the traffic: warnings in GET /v1/status says which.",
        ),
    ],
    "Store": [
        GrafanaPanel(
            "Failures of the store",
            {"{{instance}}": "increase(bpac_store_failures_total[5m])"},
            "In 5 minutes. While the store fails, nothing can be decided.",
        ),
        GrafanaPanel(
            "Rounds that are decided and not folded",
            {"{{route}} {{segment}} {{instance}}": f"bpac_unfolded_rounds{{{GAME}}}"},
            "The folder publishes thresholds from what it has folded. A lag that grows delays them; the promise holds.",
        ),
        GrafanaPanel(
            "Who folds",
            {"{{route}} {{segment}} {{instance}}": f"bpac_folding{{{GAME}}} == 1"},
            "One replica folds each shared game at a time; after it ends, another one takes over within seconds.",
        ),
        GrafanaPanel(
            "Replicas that share a game",
            {PER_GAME: _game("bpac_replicas")},
            "Fewer than there are replicas: some have had no request of the game, or have another configuration.",
        ),
        GrafanaPanel(
            "Entries of the journal per second",
            {PER_GAME: f"max by (route, segment) (rate(bpac_journal_entries_total{{{GAME}}}[5m]))"},
            "Of shared games, all gateways together. One gateway folds a game: docs/capacity.md says how much it can.",
        ),
        GrafanaPanel(
            "Requests answered without the store per second",
            {"{{route}}": _rate("bpac_without_store_total", "route")},
            "Redis was gone, so that the expert answered them: safe, and nothing is saved.",
            "reqps",
        ),
        GrafanaPanel(
            "Journals with missing entries",
            {"{{game}}": "max by (game) (bpac_journal_losses_total)"},
            "Found when the store was opened. A new game with its own promise has begun: docs/audit.md.",
        ),
        GrafanaPanel(
            "Processes that were started again",
            {"{{instance}}": "increase(bpac_workers_lost_total[15m])"},
            "In 15 minutes, with bpac serve --workers. Requests in progress were cut off.",
        ),
        GrafanaPanel(
            "Reloads",
            {"{{instance}} {{result}}": "increase(bpac_reloads_total[15m])"},
            "In 15 minutes. After a failed one the old configuration stays in use.",
        ),
        GrafanaPanel(
            "Failures of upkeep",
            {"{{instance}} {{work}}": "increase(bpac_upkeep_failures_total[5m])"},
            "Deadlines, budgets and other work beside requests, in 5 minutes: upkeep in GET /v1/status says more.",
        ),
    ],
}
