"""Rejections: requests that a limit or a check turned away, by reason, with what an operator can do about each."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics.counters import Metrics

log = logging.getLogger("bpac.gateway")

# By reason. Most of them are mistakes of callers; an operator can inform the callers, or raise a limit in [gateway].
REMEDIES = {
    "body_timeout": "the body of a request arrived too slowly: raise body_timeout if you trust these callers",
    "connections": "all connections are in use: raise max_connections, or add a gateway",
    "connections_per_address": "one address has too many connections: raise max_connections_per_address if your "
    "callers are behind a proxy",
    "force_not_allowed": "the header x-bpac-force needs a key with the role operator: give callers such a key, or set "
    "allow_force in the route",
    "head_timeout": "a connection sent no complete headers in time: harmless, unless you know these callers",
    "head_too_large": "the headers are too long, for example because of cookies: shorten them, or raise max_head",
    "host_not_allowed": "a gateway without keys only answers to its own name: use that name, or configure keys",
    "insufficient_quota": "the budget of a key is used up: raise requests_per_day or tokens_per_day of the key, or "
    "have the caller wait for the next day",
    "invalid_api_key": "the API key is wrong or missing: give callers a key of this gateway; many wrong keys may be an "
    "attempt to guess one",
    "invalid_http": "this is not HTTP: check whether a caller uses https:// with a gateway that has no encryption",
    "missing_role": "the API key lacks the role that was needed: add the role to the key, or use another key",
    "not_json": "the body is not JSON: have callers send Content-Type: application/json",
    "not_yours": "the decision belongs to another tenant: use the key that made the request, or an operator's key",
    "origin_not_allowed": "a web page of another site tried to use this gateway: nothing to do, unless it is your page",
    "pipeline": "a connection sent too many requests without waiting for responses: use more connections",
    "rate_limit_exceeded": "a key sends more than it may per minute: raise requests_per_minute or tokens_per_minute of "
    "the key, or have the caller wait as retry-after says",
    "send_timeout": "a response was not read in time: raise send_timeout if you trust these callers",
    "too_deep": "the JSON is nested too deeply: raise max_depth if such requests are intended",
    "too_large": "the body is too large: raise max_body if such requests are intended",
    "too_many_headers": "there are too many headers: have callers send fewer, or raise max_headers",
    "too_many_tickets": "a caller holds max_tickets tickets of a route: have it decide or withdraw them, or raise "
    "max_tickets in the route",
    "too_many_values": "the JSON has too many values: raise max_values if such requests are intended",
    "unsupported": "a request to /v1/responses or /v1/messages asked for something that chat completions cannot "
    "express: docs/doors.md says what callers can do instead",
    "untranslatable": "a model's answer could not be expressed in the API of the caller, who got an error: look at the "
    "model's server, whose answers are not valid chat completions",
}

# Reasons whose message says whose limit was reached; it has nothing that callers wrote.
OF_KEYS = ("insufficient_quota", "rate_limit_exceeded")


class Rejections:
    """Counts rejected requests by reason, and logs the first of each reason and then at most one line per minute.

    Parameters
    ----------
    metrics: the counters; these are ``bpac_http_refused_total{reason}``.

    >>> rejections = Rejections(Metrics())
    >>> rejections.count("head_timeout", "192.0.2.1")
    >>> rejections.counts
    {'head_timeout': 1}
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counts: Counter[str] = Counter()
        self._rate = LogRate()

    @property
    def counts(self) -> dict[str, int]:
        """The number of rejected requests since the start, by reason."""
        return dict(self._counts)

    def count(self, reason: str, address: str, limit: str = "") -> None:
        """Count a rejected request.

        Parameters
        ----------
        reason: one of ``REMEDIES``.
        address: the address of the caller; a line of the log has that of the latest.
        limit: whose limit was reached and which, if it is one of a key.
        """
        self._counts[reason] += 1
        self._metrics.count("bpac_http_refused_total", reason=reason)
        if rejected := self._rate.count(reason):
            known = {"reason": reason, "address": address, "since_last_line": rejected}
            log.warning("request rejected", extra=known | ({"limit": limit} if limit else {}))

    def add(self, counts: Mapping[str, int]) -> None:
        """Add rejected requests that were counted, for metrics too, and logged elsewhere."""
        self._counts.update(counts)

    def count_error(self, error: Exception, address: str) -> None:
        """Count an error that was sent to a caller, if its code is that of a limit or a check."""
        if isinstance(error, BadRequest) and error.code in REMEDIES:
            self.count(error.code, address, str(error) if error.code in OF_KEYS else "")

    def with_remedies(self) -> list[dict[str, Any]]:
        """Reasons with their counts and what to do about each, the most frequent first, as JSON values."""
        counts = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [{"reason": reason, "count": count, "remedy": REMEDIES[reason]} for reason, count in counts]
