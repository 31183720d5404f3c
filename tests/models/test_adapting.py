"""Requests made acceptable: each change by itself, and what must not be changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.errors import SettingsError
from bpac.models.adapting.adaptation import Adaptation
from bpac.models.adapting.tool_call_ids import accepted_id
from bpac.models.fields import address, endpoint_url, with_query


def test_the_callers_request_is_not_changed() -> None:
    """Both models are asked with the same request, one after the other."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "a": {"b": {"c": 1, "d": 2}},
        "max_tokens": 5,
        "messages": [{"role": "assistant", "content": None, "reasoning": "r", "tool_calls": [call]}],
    }
    before = repr(body)
    adapt = Adaptation(
        frozenset({"a.b.c"}), {"x": "y"}, "max_completion_tokens", 10, False, "mistral", thinking_in_history="drop"
    )
    changed = adapt(body)
    assert repr(body) == before
    assert changed["a"] == {"b": {"d": 2}}
    assert changed["max_completion_tokens"] == 10
    assert changed["messages"][0].keys() == {"role", "content", "tool_calls"}


@pytest.mark.parametrize(
    ("adapt", "body", "expected"),
    [
        (Adaptation(frozenset({"a", "b"})), {"a": 1, "c": 2}, {"c": 2}),
        (Adaptation(frozenset({"a.b"})), {"a": {"b": 1}}, {}),
        (Adaptation(frozenset({"a.b"})), {"a": [1]}, {"a": [1]}),
        (Adaptation(frozenset({"a.b.c"})), {"a": {"b": 1}}, {"a": {"b": 1}}),
        (Adaptation(rename={"seed": "random_seed"}), {"seed": 7}, {"random_seed": 7}),
        (Adaptation(rename={"a": "b"}), {"a": 1, "b": 2}, {"b": 2}),
        (Adaptation(token_limit="max_tokens"), {"max_completion_tokens": 5}, {"max_tokens": 5}),
        (Adaptation(token_limit="max_tokens"), {"max_completion_tokens": 5, "max_tokens": 6}, {"max_tokens": 6}),
        (Adaptation(token_limit="max_tokens"), {"max_completion_tokens": 5, "max_tokens": None}, {"max_tokens": 5}),
        (Adaptation(token_limit="max_tokens"), {"max_completion_tokens": None}, {}),
        (Adaptation(least_max_tokens=10), {"max_tokens": 5.0}, {"max_tokens": 10}),
        (Adaptation(least_max_tokens=10), {"max_completion_tokens": 50}, {"max_completion_tokens": 50}),
        (Adaptation(least_max_tokens=10), {}, {}),
        (Adaptation(least_max_tokens=10), {"max_tokens": 0}, {"max_tokens": 0}),
        (Adaptation(least_max_tokens=10), {"max_tokens": "5"}, {"max_tokens": "5"}),
        (Adaptation(least_max_tokens=10), {"max_tokens": True}, {"max_tokens": True}),
        (Adaptation(stream_options=False), {"stream": True, "stream_options": {}}, {"stream": True}),
    ],
)
def test_fields_are_changed(adapt: Adaptation, body: dict[str, Any], expected: dict[str, Any]) -> None:
    """Dropped, renamed, raised; a value that is no limit is left to the server, which explains the mistake."""
    assert adapt(body) == expected


@given(st.text(max_size=60))
def test_ids_of_tool_calls_are_accepted_and_the_same_every_time(given_id: str) -> None:
    """Each server's own form; an id that is accepted stays, also the one that was made."""
    made = accepted_id(given_id, "mistral")
    assert len(made) == 9
    assert made.isascii()
    assert made.isalnum()
    assert accepted_id(given_id, "mistral") == made
    assert accepted_id(made, "mistral") == made
    assert 1 <= len(accepted_id(given_id, "openai")) <= 40
    assert accepted_id(given_id, "any") == given_id


def test_different_calls_keep_different_ids() -> None:
    """Ids that differ only at their end, as servers number them, stay different."""
    assert len({accepted_id(f"functions.search:{number}", "mistral") for number in range(10_000)}) == 10_000


def test_a_result_keeps_belonging_to_its_call() -> None:
    """In all messages of a conversation, and in the next request of it."""
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "call_a"}, {"id": "call_b"}]},
        {"role": "tool", "tool_call_id": "call_b", "content": "2"},
        {"role": "tool", "tool_call_id": "call_a", "content": "1"},
    ]
    adapt = Adaptation(tool_call_ids="mistral")
    first = adapt({"messages": messages})["messages"]
    calls = [call["id"] for call in first[0]["tool_calls"]]
    assert calls == [first[2]["tool_call_id"], first[1]["tool_call_id"]]
    assert adapt({"messages": [*messages, {"role": "user", "content": "?"}]})["messages"][:3] == first


@pytest.mark.parametrize("tool_calls", [None, 3, "x", [None, 3, {"id": 5}, {}]])
def test_malformed_history_is_left_to_the_server(tool_calls: Any) -> None:
    """What a caller sends is no error of the gateway."""
    adapt = Adaptation(tool_call_ids="mistral", thinking_in_history="drop")
    body = {
        "messages": [{"role": "assistant", "content": 5, "tool_calls": tool_calls, "tool_call_id": 5}, "text", None]
    }
    assert adapt(body) == body


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ({"content": "<think>a</think>b"}, {"content": "b"}),
        ({"content": "b", "reasoning": "a", "thinking_blocks": [1], "reasoning_details": [2]}, {"content": "b"}),
        (
            {"content": [{"type": "thinking"}, {"type": "text", "text": "b"}]},
            {"content": [{"type": "text", "text": "b"}]},
        ),
        ({"content": [{"type": "redacted_thinking"}]}, {"content": ""}),
        ({"content": [{"type": "thinking"}], "tool_calls": [1]}, {"content": None, "tool_calls": [1]}),
        (
            {"content": "How do I write <think> in HTML? </think>"},
            {"content": "How do I write <think> in HTML? </think>"},
        ),
    ],
)
def test_thinking_is_taken_out_of_earlier_answers(message: dict[str, Any], kept: dict[str, Any]) -> None:
    """In every form in which servers write it; the answer stays."""
    adapt = Adaptation(thinking_in_history="drop")
    assert adapt({"messages": [{"role": "assistant", **message}]}) == {"messages": [{"role": "assistant", **kept}]}


def test_thinking_of_the_user_is_the_users() -> None:
    """Only answers of models are changed."""
    body = {"messages": [{"role": "user", "content": "<think>a</think>b", "reasoning_content": "c"}]}
    assert Adaptation(thinking_in_history="drop")(body) == body
    assert Adaptation(thinking_in_history="fill")(body) == body


def test_missing_thinking_is_filled() -> None:
    """An answer of a model that does not think gets an empty one; thinking that is there stays."""
    messages = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b", "reasoning_content": "c"}]
    filled = Adaptation(thinking_in_history="fill")({"messages": messages})["messages"]
    assert [message["reasoning_content"] for message in filled] == ["", "c"]


@pytest.mark.parametrize(
    ("base_url", "query", "url"),
    [
        ("https://a.example/v1?x=1", {}, "https://a.example/v1/chat?x=1"),
        ("https://a.example/v1/?x=/a/", {}, "https://a.example/v1/chat?x=/a/"),
        ("https://a.example/v1", {"api-version": "2"}, "https://a.example/v1/chat?api-version=2"),
        ("https://a.example/v1?api-version=1&x=1", {"api-version": "2"}, "https://a.example/v1/chat?x=1&api-version=2"),
        ("https://a.example", {"a b": "c&d=e#f"}, "https://a.example/chat?a%20b=c%26d%3De%23f"),
    ],
)
def test_the_path_goes_before_the_query(base_url: str, query: dict[str, str], url: str) -> None:
    """A query in the address and the query of the settings are both at the end, and values cannot leave their place."""
    assert endpoint_url(with_query(address(base_url, "base_url"), query), "/chat") == url


def test_an_address_is_still_checked() -> None:
    """A query does not make an address of something else."""
    with pytest.raises(SettingsError):
        address(with_query("nothing", {"a": "b"}), "base_url")
