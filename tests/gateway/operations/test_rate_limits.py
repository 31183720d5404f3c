"""Rate limits of keys: requests and tokens in any 60 seconds, and what callers and operators see of them."""

import logging
import random
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.auth.keys import Identity, KeyLimits
from bpac.gateway.budgets.budgets import Budgets, Charge
from bpac.gateway.budgets.minute import MINUTE, LastMinute
from bpac.gateway.config.file import Config
from bpac.gateway.http.bad_request import BadRequest
from bpac.testing import Reply
from tests.gateway.configured import get_json, settings
from tests.gateway.deciding.own_route import Client, own
from tests.gateway.operations.asking import ask
from tests.gateway.operations.test_budgets import TEAM, keys
from tests.gateway.running import Running, RunningGateway

NOON = 43_200.0


class Minutes:
    """A tenant with limits, and a clock that a test sets."""

    def __init__(self, **limits: int) -> None:
        self.now = 1000.0
        self.who = Identity("team", "team", frozenset(), KeyLimits(**limits))
        self.budgets = Budgets(lambda: self.now)

    def admit(self, size: int = 0) -> Charge:
        """Admit a request of that many bytes."""
        charge = self.budgets.admit(self.who, size, NOON)
        assert charge is not None
        return charge

    def refused(self) -> BadRequest:
        """The error of a request that is refused."""
        with pytest.raises(BadRequest) as found:
            self.admit()
        return found.value


def test_requests_beyond_the_limit_get_429(caplog: pytest.LogCaptureFixture) -> None:
    """OpenAI's body and headers; no model is asked, nothing is a round, and the log has one line."""
    with Running(Reply("42"), gateway=keys(requests_per_minute=2)) as (gateway, models):
        assert [ask(gateway.url, "one")[0] for _ in range(2)] == [200, 200]
        gateway.idle()
        asked = len(models.requests)
        with caplog.at_level(logging.WARNING):
            refused = [ask(gateway.url, "one") for _ in range(5)]
        status, headers, body = refused[0]
        assert {one[0] for one in refused} == {status} == {429}
        assert (body["error"]["code"], body["error"]["type"]) == ("rate_limit_exceeded", "rate_limit_error")
        assert "2 requests per minute" in body["error"]["message"]
        wait = int(headers["retry-after"])
        assert 0 < wait <= MINUTE + 1
        assert headers["x-ratelimit-limit-requests"] == "2"
        assert headers["x-ratelimit-remaining-requests"] == "0"
        assert headers["x-ratelimit-reset-requests"] == f"{wait}s"
        (line,) = [line for line in caplog.records if line.getMessage() == "request rejected"]
        assert "the rate limit of team is reached: 2 requests per minute" in vars(line)["limit"]
        assert len(models.requests) == asked
        assert ask(gateway.url, "free")[0] == 200
        gateway.idle()
        (game,) = gateway.service.live_games()
        assert (game.router.step, game.router.summary().withdrawn) == (3, 0)
        shown = get_json(f"{gateway.url}/v1/status", "free")
        assert shown["budgets"]["team"]["last_minute"]["requests"] == 2
        assert shown["callers"]["refused"] == {"rate_limit_exceeded": 5}
        assert 'bpac_http_refused_total{reason="rate_limit_exceeded"} 5' in gateway.service.measurements()


def test_callers_that_ask_themselves_are_limited() -> None:
    """A ticket is a request, and deciding it is none; a ticket that is refused was never given out."""
    with RunningGateway(own(gateway=keys(requests_per_minute=2))) as gateway:
        team = Client(gateway, "one")
        tickets = [team.arrive(), team.arrive()]
        assert team.refusal("arrive", route="own") == (429, "rate_limit_exceeded")
        assert team.decide(tickets[0])["decision"]
        assert gateway.service.metrics.value("bpac_caller_tickets_total", route="own", event="given") == 2


def test_no_minute_has_more_than_the_limit() -> None:
    """Whenever requests come, any 60 seconds hold at most the limit, and who waits as told is admitted."""
    chance, limit = random.Random(3), 7
    minutes = Minutes(requests_per_minute=limit)
    times: list[float] = []
    for _ in range(2000):
        minutes.now += chance.expovariate(0.3)
        try:
            minutes.admit()
        except BadRequest as refused:
            minutes.now += refused.retry_after or 0
            minutes.admit()
        times.append(minutes.now)
    assert len(times) == 2000
    assert all(later - first >= MINUTE for first, later in zip(times, times[limit:], strict=False))


def test_tokens_count_when_they_are_known() -> None:
    """The estimate counts at once; what a long answer adds counts at its end, and what was too much is taken back."""
    minutes = Minutes(tokens_per_minute=100)
    long = minutes.admit(size=40)
    assert minutes.budgets.shown()["team"]["last_minute"] == {"requests": 1, "tokens": 10}
    minutes.now += 2 * MINUTE
    assert minutes.budgets.shown()["team"]["last_minute"] == {"requests": 0, "tokens": 0}
    long.settle(500)
    error = minutes.refused()
    assert (error.retry_after, "100 tokens per minute" in str(error)) == (MINUTE + 1, True)
    minutes.now += MINUTE + 1
    wide = minutes.admit(size=800)
    minutes.refused()
    wide.settle(20)
    assert minutes.budgets.shown()["team"]["last_minute"] == {"requests": 1, "tokens": 20}
    minutes.admit(size=40).refund()
    assert minutes.budgets.shown()["team"]["last_minute"] == {"requests": 1, "tokens": 20}


def test_a_refund_after_its_minute_changes_nothing() -> None:
    """The request was forgotten already."""
    minutes = Minutes(requests_per_minute=1)
    charge = minutes.admit()
    minutes.now += MINUTE + 1
    minutes.admit()
    charge.refund()
    assert minutes.refused().code == "rate_limit_exceeded"


def test_a_used_up_day_is_named_before_a_minute() -> None:
    """Whoever waited a minute would be refused again."""
    minutes = Minutes(requests_per_day=1, requests_per_minute=1)
    minutes.admit()
    assert minutes.refused().code == "insufficient_quota"


def test_keys_without_a_limit_per_minute_cost_nothing() -> None:
    """Nothing is kept for them."""
    minutes = Minutes(requests_per_day=5)
    assert minutes.admit().minute is None
    assert "last_minute" not in minutes.budgets.shown()["team"]


def test_the_wait_is_until_enough_is_over() -> None:
    """One second with much in it is enough, several with little are needed."""
    minute = LastMinute()
    for second, requests in ((10, 1), (12, 1), (20, 5)):
        minute.add(second, requests, 0)
    assert [minute.wait(30, most, tokens=False) for most in (8, 7, 6, 5, 1)] == [0, 41, 43, 51, 51]
    assert minute.wait(30, 1, tokens=True) == 0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "60"])
def test_wrong_limits_are_named(wrong: Any) -> None:
    """The error has the path of the key."""
    config = settings("http://127.0.0.1:9/v1", gateway={"keys": [{**TEAM, "requests_per_minute": wrong}]})
    with pytest.raises(SettingsError, match="requests_per_minute"):
        Config.read(config)


def test_streams_report_their_tokens() -> None:
    """A limit on tokens per minute counts those of a stream, whose caller does not see the counts."""
    with Running(Reply("forty two"), gateway=keys(tokens_per_minute=9)) as (gateway, _):
        status, _, body = ask(gateway.url, "one", stream=True)
        assert (status, '"usage"' in body) == (200, False)
        assert gateway.service.budgets.shown()["team"]["last_minute"] == {"requests": 1, "tokens": 9}
        status, headers, body = ask(gateway.url, "one", stream=True)
        assert (status, headers["x-ratelimit-limit-tokens"]) == (429, "9")
