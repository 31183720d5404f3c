"""Metrics are what Prometheus reads: each has a description and a type, and is counted where it happens."""

import re
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from bpac.gateway.telemetry.metrics.counters import BOUNDS, COUNTERS, Metrics
from bpac.gateway.telemetry.metrics.game_metrics import GAMES
from bpac.gateway.telemetry.metrics.prometheus import prometheus_text
from bpac.testing import Reply
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

SOURCE = Path(__file__).parents[3] / "src" / "bpac"
MODELS = pair(Reply("41"), Reply("42"))


def families(gateway: RunningGateway) -> dict[str, Metric]:
    """The metrics of a gateway, by the name without ``_total``."""
    page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    return {family.name: family for family in text_string_to_metric_families(page)}


def test_every_metric_has_a_description_and_a_type() -> None:
    """HELP is a sentence, counters are those that end in _total, and there are no series of creation times."""
    with Running(MODELS, model={"price": 1.0}, learn=True) as (gateway, _):
        post(gateway.url, ASK)
        post(gateway.url, b"", "/metrics", headers={"Host": "other.example"}, method="GET")
        gateway.idle()
        found = families(gateway)
        page = post(gateway.url, b"", "/metrics", method="GET")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert {name.removesuffix("_total") for name in GAMES} - {
        "bpac_tokens_saved_at_most",
        "bpac_money_saved_at_most",
    } <= set(found)
    for family in found.values():
        assert re.fullmatch(r"[A-Z].+\.", family.documentation), family.name
        counted = any(sample.name.endswith("_total") for sample in family.samples)
        expected = "histogram" if family.name == "bpac_seconds" else "counter" if counted else "gauge"
        assert family.type == expected, family.name
    assert b"_created" not in page.body
    assert len(set(re.findall(rb"^# TYPE (\S+)", page.body, re.MULTILINE))) == page.body.count(b"# TYPE ")


def test_durations_are_a_cumulative_histogram() -> None:
    """Every bucket counts the durations up to its bound, the last one all of them; the sum is in seconds."""
    metrics = Metrics()
    for seconds in (0.0001, 0.02, 0.02, 1000.0):
        metrics.time("draft", "homework", seconds)
    (family,) = [
        one for one in text_string_to_metric_families(prometheus_text(metrics, {}, 0)) if one.name == "bpac_seconds"
    ]
    buckets = {sample.labels["le"]: sample.value for sample in family.samples if "le" in sample.labels}
    assert list(buckets) == [*map(str, BOUNDS), "+Inf"]
    assert (buckets["0.001"], buckets["0.01"], buckets["0.025"], buckets["300.0"], buckets["+Inf"]) == (1, 1, 3, 3, 4)
    rest = {sample.name: sample.value for sample in family.samples if "le" not in sample.labels}
    assert rest == {"bpac_seconds_count": 4, "bpac_seconds_sum": pytest.approx(1000.0401)}


def test_labels_may_hold_any_text() -> None:
    """Names of routes and segments come from operators and callers; the parser reads them as they were."""
    metrics = Metrics()
    name = 'a"b\\c\nd é {}'
    metrics.count("bpac_answers_total", route=name, answered_by="draft")
    (family,) = [
        one for one in text_string_to_metric_families(prometheus_text(metrics, {}, 0)) if one.name == "bpac_answers"
    ]
    assert family.samples[0].labels == {"route": name, "answered_by": "draft"}


def test_a_counter_without_a_description_is_an_error() -> None:
    """It fails where it is counted first, and all counters of the source have one."""
    with pytest.raises(ValueError, match="bpac_other_total has no description"):
        Metrics().count("bpac_other_total")
    counted = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"metrics\.count\(\s*\"(\w+)\"", path.read_text(encoding="utf-8"))
    }
    assert counted == set(COUNTERS)


def test_every_game_has_its_own_series() -> None:
    """The segment is a label, so that segments can be compared and added up."""
    with Running(MODELS, segment_by="header:x-team") as (gateway, _):
        for team in ("a", "b", "b"):
            post(gateway.url, ASK, headers={"x-team": team})
        gateway.idle()
        rounds = {sample.labels["segment"]: sample.value for sample in families(gateway)["bpac_rounds"].samples}
    assert rounds == {"a": 1, "b": 2}


def test_a_gateway_without_requests_has_metrics() -> None:
    """Prometheus may read them before the first request."""
    with RunningGateway(settings("http://127.0.0.1:9/v1")) as gateway:
        found = families(gateway)
    assert found["bpac_in_flight"].samples[0].value == 0
    assert found["bpac_rounds"].samples[0].value == 0
