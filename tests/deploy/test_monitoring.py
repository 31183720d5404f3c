"""Prometheus, its alerts, and the Grafana dashboard."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest
from scripts.write_grafana_dashboard import FILE, text

from bpac.gateway.telemetry.metrics.counters import COUNTERS
from bpac.testing import Reply, Request
from tests.deploy.tools import DEPLOY, ROOT, documents, passes
from tests.gateway.configured import OPERATOR, bearer
from tests.gateway.running import Running, RunningGateway

ALERTS = DEPLOY / "prometheus" / "alerts.yml"
RULES = [rule for group in documents(ALERTS)[0]["groups"] for rule in group["rules"]]
QUERIES = [
    *(rule["expr"] for rule in RULES),
    *(target["expr"] for panel in json.loads(text())["panels"] for target in panel.get("targets", [])),
]
# Counted only when something happens that no test here brings about; the gateway describes them in one table.
RARE = {
    "bpac_journal_losses_total",
    "bpac_turned_away_total",
    "bpac_reloads_total",
    "bpac_upkeep_failures_total",
    "bpac_workers_lost_total",
}
# Those of games that are shared through Redis; tests/deploy/test_processes.py has a gateway with such games.
SHARED = {
    "bpac_folding",
    "bpac_unfolded_rounds",
    "bpac_replicas",
    "bpac_journal_entries_total",
    "bpac_without_store_total",
    "bpac_archive_failures_total",
}


def _model(request: Request) -> Reply:
    """Answers, fails or refuses as the question says, of the draft or of the expert."""
    name, question = request.body["model"], request.body["messages"][-1]["content"]
    status = {f"{name} fails": 503, f"{name} refuses": 400}.get(question)
    return Reply("it is so", status=status) if status else Reply("42" if name == "draft" else "41")


@pytest.fixture(scope="module")
def metrics() -> Iterator[str]:
    """The page /metrics of a gateway after some requests, of which some failed."""
    prices = {"price": {"input": 1.0, "output": 2.0}}
    with Running(_model, gateway={"keys": [CALLER, OPERATOR]}, model=prices) as (gateway, _):
        for question in ("6 * 7?", "draft fails", "draft refuses", "expert fails", "expert refuses"):
            _ask(gateway, "caller", question)
        _ask(gateway, "wrong", "6 * 7?")
        gateway.idle()
        request = urllib.request.Request(f"{gateway.url}/metrics", headers=bearer("ops-key"))
        with urllib.request.urlopen(request, timeout=60) as response:
            yield response.read().decode()


CALLER = {"name": "callers", "key": "caller", "roles": ["call"]}


def _ask(gateway: RunningGateway, key: str, question: str) -> None:
    body = {"model": "homework", "messages": [{"role": "user", "content": question}]}
    headers = {"content-type": "application/json", **bearer(key)}
    request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with suppress(urllib.error.HTTPError):  # a status that is counted is what is wanted
        urllib.request.urlopen(request, timeout=60).close()


def _used(query: str) -> set[str]:
    """The metrics in a query."""
    return set(re.findall(r"\bbpac_[a-z_]+", query))


def test_dashboard_and_alerts_use_metrics_that_a_gateway_has(metrics: str) -> None:
    """Every name is on the page /metrics of a running gateway, or among the counters of rare events."""
    present = set(re.findall(r"^(bpac_[a-z_]+)", metrics, re.MULTILINE))
    used = set().union(*map(_used, QUERIES))
    assert len(used) > 30
    assert used - present == RARE | SHARED
    assert set(COUNTERS) >= RARE


def test_labels_in_queries_are_those_of_the_metrics(metrics: str) -> None:
    """A misspelt label would select nothing, for ever."""
    labels: dict[str, set[str]] = {"bpac_journal_losses_total": {"game"}, "bpac_turned_away_total": {"route"}}
    labels |= {"bpac_reloads_total": {"result"}, "bpac_upkeep_failures_total": {"work"}}
    labels |= {name: {"route", "segment"} for name in SHARED}
    for name, selector in re.findall(r"^(bpac_[a-z_]+)(?:{(.*)})? ", metrics, re.MULTILINE):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', selector))
    checked = 0
    for query in QUERIES:
        for name, selector in re.findall(r"\b(bpac_[a-z_]+){([^}]*)}", query):
            asked = set(re.findall(r"(\w+)=~?\"", selector))
            assert asked <= labels[name], query
            checked += 1
        for group, inside in re.findall(r"by \(([^)]*)\) \((?:rate|increase)?\(?(bpac_[a-z_]+)", query):
            assert {name.strip() for name in group.split(",")} <= labels[inside] | {"instance"}, query
            checked += 1
    assert checked > 40


def test_a_misspelt_metric_would_be_found() -> None:
    """The names are read from queries as Prometheus reads them."""
    assert _used('max by (route) (rate(bpac_round_total{route=~".*"}[5m])) > 1') == {"bpac_round_total"}


def test_the_dashboard_is_up_to_date() -> None:
    """It is written by a script from a list of panels."""
    assert FILE.read_text() == text(), "run python -m scripts.write_grafana_dashboard"


def test_grafana_finds_dashboard_and_data() -> None:
    """The panels use the source that is provisioned."""
    (sources,) = documents(DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yml")
    uids = {source["uid"] for source in sources["datasources"]}
    panels = [panel for panel in json.loads(FILE.read_text())["panels"] if panel["type"] != "row"]
    assert {panel["datasource"]["uid"] for panel in panels} == uids
    assert all(panel["description"] for panel in panels)


def test_prometheus_accepts_configuration_and_rules() -> None:
    """As promtool checks them."""
    passes("promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus" / "prometheus.yml")
    assert f"{len(RULES)} rules found" in passes("promtool", "check", "rules", ALERTS)


def test_alerts_fire_when_they_should() -> None:
    """Series that break, and what fires then; a healthy gateway sets off nothing."""
    assert "SUCCESS" in passes("promtool", "test", "rules", ROOT / "tests" / "deploy" / "alerts_test.yml")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_happened_and_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    """One sentence each at least, and a severity."""
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["remedy"].endswith(".")


def test_the_alert_about_losses_has_the_epsilon_of_the_configuration() -> None:
    """Prometheus does not know epsilon: it is in the rule."""
    (epsilon,) = re.findall(r"^epsilon = (\S+)", (DEPLOY / "gateway.toml").read_text(), re.MULTILINE)
    (rule,) = [rule for rule in RULES if rule["alert"] == "BpacLossAboveEpsilon"]
    assert rule["expr"].endswith(f"> {epsilon}")
