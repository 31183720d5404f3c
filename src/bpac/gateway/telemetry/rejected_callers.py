"""Callers that a limit or a check turned away, by reason, with what an operator can do about it."""

from typing import Any

from bpac.gateway.service import Service

# By the reason that is counted. Most are the callers' to mend; an operator can tell them, or raise a limit.
REMEDIES = {
    "body_timeout": "the body of a request came too slowly: raise body_timeout if these callers are yours",
    "connections": "all connections are in use: raise max_connections, or add a gateway",
    "connections_per_address": "one address has too many connections: raise max_connections_per_address if a proxy "
    "stands before your callers",
    "head_timeout": "a connection sent no complete head in time: harmless, unless these callers are yours",
    "head_too_large": "long headers, such as cookies: have callers leave them out, or raise max_head",
    "host_not_allowed": "without keys the gateway answers to its own name only: use that name, or configure keys",
    "invalid_api_key": "a wrong key, or none: give callers a key of this gateway; many of them are somebody guessing",
    "invalid_http": "not HTTP: check whether a caller uses https:// with a gateway that has no encryption",
    "missing_role": "a key without the role that was needed: add the role to the key, or give them another key",
    "not_json": "a body that is not JSON: have callers send Content-Type: application/json",
    "not_yours": "a decision of another tenant was asked for: use the key that made the request, or an operator's",
    "origin_not_allowed": "a web page of another site tried to use this gateway: nothing to do, unless it is yours",
    "pipeline": "requests were sent far ahead of their answers: use more connections",
    "send_timeout": "an answer was not read in time: raise send_timeout if these callers are yours",
    "too_deep": "JSON that nests too deeply: raise max_depth if such requests are meant",
    "too_large": "a body that is too large: raise max_body if such requests are meant",
    "too_many_headers": "too many headers: have callers send fewer, or raise max_headers",
    "too_many_values": "JSON with too many values: raise max_values if such requests are meant",
}


def refused_callers(service: Service) -> dict[str, Any]:
    """Open connections now, and refusals since the gateway started, the most frequent first, as JSON values.

    Parameters
    ----------
    service: of the gateway.
    """
    counts = sorted(service.refusals.counts.items(), key=lambda item: (-item[1], item[0]))
    return {
        "connections": len(service.connections),
        "refused": [
            {"reason": reason, "count": count, "remedy": REMEDIES.get(reason, "see the gateway's log")}
            for reason, count in counts
        ],
    }
