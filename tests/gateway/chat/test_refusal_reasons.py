"""Refusals of the expert by reason: in the status, the metrics, ``bpac status`` and among the troubles."""

from pathlib import Path
from typing import Any

import pytest

from bpac.dashboard.history.history import History
from bpac.dashboard.history.refusals import MOST_REASONS, NOT_RECORDED, OTHER, RefusalReason, Refusals
from bpac.dashboard.remedies import refusal_remedy
from bpac.dashboard.troubles import ScoredGame, refusal_troubles
from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.gateway.serving import main, to_toml

# What the expert refuses, by a field of the request: the response, and the reason that is counted.
REFUSED = {
    "temperature": (Reply("SECRET: temperature is not supported with top_p", status=400), "temperature, top_p"),
    "tools": (Reply("SECRET: this model does not support tools", status=400), "tools"),
    "user": (Reply("SECRET: no", status=422), ""),
}


def expert(request: Request) -> Reply:
    """A model that refuses some fields."""
    return next((reply for name, (reply, _) in REFUSED.items() if name in request.body), Reply("42"))


SCRIPT = pair(Reply("42", probability=0.8), expert)
REASONS = {"400: it names temperature, top_p": 12, "400: it names tools": 3, "422": 1}


def refuse(gateway: RunningGateway) -> None:
    """Requests that the expert answers, and others that it refuses."""
    requests: list[dict[str, Any]] = [{}] * 4 + [{"temperature": 0}] * 12 + [{"tools": []}] * 3 + [{"user": "me"}]
    for more in requests:
        assert post(gateway.url, ASK | more).status in (200, 400, 422)
    gateway.idle()


def test_refusals_are_counted_by_status_and_named_fields(caplog: pytest.LogCaptureFixture) -> None:
    """Beside the plain number; nothing of the server's text is shown anywhere but to the caller."""
    with Running(SCRIPT, epsilon=0.01) as (gateway, _):
        refuse(gateway)
        status = gateway.status()
        assert status["refused"] == 16
        assert status["refusals"] == {"requests": 16, "share": 16 / 20, "reasons": REASONS}
        assert metric(gateway, "bpac_refused_total", route="homework") == 16
        assert metric(gateway, "bpac_refusals_total", route="homework", status="400") == 15
        assert metric(gateway, "bpac_refusals_total", route="homework", status="422") == 1
        (trouble,) = status["troubles"]
        assert "the expert refused 15% of the latest requests sent to it (12 × 400: it names temp" in trouble["what"]
        assert "temperature, top_p: drop or rename it in the expert's table" in trouble["remedy"]
        assert "tools: choose an expert that supports it" in trouble["remedy"]
        shown = get_json(f"{gateway.url}/dashboard/data")
        listed = next(one for one in shown["troubles"] if one["what"].startswith("route homework: the expert refused"))
        assert (listed["count"], listed["remedy"]) == (16, trouble["remedy"])
        assert 0 < shown["generated"] - listed["since"] < 600
        assert "callers get the refusal" in listed["cost"]
        assert "SECRET" not in f"{status}{shown}"
    assert "SECRET" not in caplog.text


def test_reasons_survive_a_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are read from the journal and from a snapshot, and ``bpac status`` prints them without the gateway."""
    store = f"sqlite:///{tmp_path}/bpac.db"
    with ScriptedServer(SCRIPT) as models:
        config = settings(models.base_url, gateway={"store": store}, epsilon=0.01)
        with RunningGateway(config) as gateway:
            refuse(gateway)
            before = gateway.status()
        with RunningGateway(config) as gateway:
            assert gateway.status()["refusals"] == before["refusals"] | {"reasons": REASONS}
            assert gateway.status()["troubles"] == before["troubles"]
    file = tmp_path / "gateway.toml"
    file.write_text(to_toml(config))
    assert main(["status", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "refused by the expert: 16 (80.0% of the requests sent to it): 12 × 400: it names temp" in printed
    assert "; 3 × 400: it names tools; 1 × 422" in printed
    assert "What to do: the expert's server does not accept temperature, top_p: drop or rename it" in printed


def test_few_refusals_are_no_trouble() -> None:
    """A tenth of the latest outcomes is one, until enough requests are answered again."""
    history = History()
    game = ScoredGame("homework", 100, history, lambda: 0.0)
    for step in range(30):
        refused = step % 3 == 0
        history.written(Resolved(step + 1, None if refused else 0.0, refused=refused), {"at": 7.0 + step})
    assert refusal_troubles([game]) == []
    for _ in range(12):
        history.written(Resolved(99, None, refused=True), {"at": 50.0, "refusal": "413"})
    (trouble,) = refusal_troubles([game, ScoredGame("homework", 0, History(), lambda: 0.0)])
    assert (trouble.since, trouble.count) == (7.0, 12)
    assert "in 1 of 2 segments (12 × 413)" in trouble.what
    for _ in range(100):
        history.written(Resolved(99, 0.0), {"at": 60.0})
    assert refusal_troubles([game]) == []


def test_the_number_of_reasons_is_bounded() -> None:
    """Callers choose what is refused; what is beyond the bound, or not in the journal, is counted all the same."""
    refusals = Refusals()
    for status in range(400, 500):
        refusals.follow(Resolved(1, None, refused=True), {"refusal": str(RefusalReason.of(status, "gfedcba"))})
    report = refusals.report(refused=103, expert_calls=200)
    assert len(refusals.reasons) == MOST_REASONS
    assert "400: it names a, b, c" in report.reasons
    assert sum(report.reasons.values()) == report.requests == 103
    assert (report.reasons[OTHER], report.reasons[NOT_RECORDED]) == (100 - MOST_REASONS + 1, 3)
    assert report.by_status()["400"] == 1


def test_a_snapshot_of_an_earlier_version() -> None:
    """It has no refusals: those that the router counts have an unknown reason."""
    state = History().state()
    del state["refusals"]
    assert History.load(state).refusals.report(2, 4).reasons == {NOT_RECORDED: 2}


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("400: it names max_tokens", "set token_limit in the expert's table"),
        ("422: it names stream_options", "set stream_options = false in the expert's table"),
        ("400: it names image_url", "choose an expert that supports it"),
        ("400: it names seed", "drop or rename it in the expert's table, or choose its preset"),
        ("404", "check model and base_url"),
        ("413", "larger than the expert's server allows"),
        (OTHER, "set drop, rename or preset"),
    ],
)
def test_every_reason_has_a_remedy(reason: str, remedy: str) -> None:
    """It names the setting that helps."""
    assert remedy in refusal_remedy(RefusalReason.read(reason))
