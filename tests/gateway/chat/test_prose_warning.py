"""A loss that compares final answers does not suit prose: the log and the status say so."""

from typing import Any

import pytest

from bpac.gateway.telemetry.prose_watch import FEWEST
from bpac.grading.text.prose import is_prose
from bpac.testing import Reply
from tests.gateway.configured import get_json
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

ONE = (
    "The heron stands still for hours at the edge of the pond, and then it strikes faster than the eye can follow. " * 3
)
OTHER = (
    "Herons hunt by waiting. They hold a pose in shallow water until a fish forgets about them, and then stab it. " * 3
)
SHORT = "The answer is 42."


def asked(gateway: RunningGateway, times: int) -> list[dict[str, Any]]:
    """The warnings in the status after some requests."""
    for _ in range(times):
        assert post(gateway.url, ASK).status == 200
    gateway.idle()
    found: list[dict[str, Any]] = get_json(f"{gateway.url}/v1/status")["warnings"]
    return found


@pytest.mark.parametrize("loss", ["answer", {"name": "answer", "equal": "text"}, "tool_call"])
def test_prose_is_recognised(loss: Any, caplog: pytest.LogCaptureFixture) -> None:
    """After a few answers: what it is, what it costs and what to do, once in the log and as long as it lasts."""
    with Running(pair(Reply(ONE), Reply(OTHER)), loss=loss) as (gateway, _):
        assert asked(gateway, FEWEST - 1) == []
        (warning,) = asked(gateway, 2)
        assert warning["route"] == "homework"
        assert f"{FEWEST + 1} of the last {FEWEST + 1} answers" in warning["what"]
        assert "judge" in warning["remedy"]
    logged = [vars(record) for record in caplog.records if record.message == "the loss does not suit the traffic"]
    assert [(record["route"], record["levelname"]) for record in logged] == [("homework", "WARNING")]
    assert "heron" not in caplog.text.lower(), "answers are never logged"


@pytest.mark.parametrize(
    ("draft", "expert"),
    [(SHORT, SHORT), ("41", "42"), (ONE + SHORT, OTHER + SHORT), (ONE, ONE)],
    ids=["short", "different", "explained", "the same prose"],
)
def test_other_traffic_is_no_reason_to_warn(draft: str, expert: str) -> None:
    """Answers that are short, that end with their result, or that are equal word by word."""
    with Running(pair(Reply(draft), Reply(expert))) as (gateway, _):
        assert asked(gateway, FEWEST + 5) == []


def test_the_warning_ends_with_the_prose() -> None:
    """It is about the latest answers."""
    with Running(pair(Reply(ONE), Reply(OTHER))) as (gateway, models):
        assert asked(gateway, FEWEST)
        models.script = pair(Reply("41"), Reply("42"))
        assert asked(gateway, FEWEST + 1) == []


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        (ONE, True),
        ("See the following points. " * 20, True),
        (SHORT, False),
        ("", False),
        ('{"a": "' + ONE + '"}', False),
        (ONE + "\n```python\npass\n```", False),
        (ONE + r"\boxed{42}", False),
        (ONE + "\n#### 42", False),
        (ONE + "\nI would go with C.", False),
    ],
)
def test_prose(text: str, prose: bool) -> None:
    """Long texts without a final answer."""
    assert is_prose(text) is prose
