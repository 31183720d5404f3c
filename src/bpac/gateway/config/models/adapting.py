"""Settings of a model that make requests acceptable to its server, and the presets that set them."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from bpac.errors import SettingsError
from bpac.gateway.config.secrets import Secret
from bpac.gateway.config.toml_tables import ConfigTable, as_table
from bpac.models.adapting.adaptation import Adaptation, ThinkingInHistory, TokenLimit
from bpac.models.adapting.presets import PRESETS, Preset
from bpac.models.adapting.tool_call_ids import IdStyle
from bpac.models.api import DEFAULT_MAX_TOKENS, ApiName
from bpac.models.fields import merged, with_query

# Fields that no request can do without.
_NEEDED = ("messages", "model", "stream")


class AdaptationSettings(ConfigTable, frozen=True, kw_only=True, dict=True):
    """The part of ``[models.NAME]`` that says what is changed in requests to the model.

    Parameters
    ----------
    preset: the name of the preset that the other keys come from where the file does not set them.
    thinking: whether the model thinks, for the preset; None if that is left to the server.
    api: the API of the server: chat completions, OpenAI's Responses API, or Anthropic's Messages API.
    default_max_tokens: limit on generated tokens of requests without one to ``messages``, which demands one.
    query: fields of the query of every request, which ``base_url`` contains already.
    drop, rename, token_limit, least_max_tokens, stream_options, tool_call_ids, thinking_in_history: as for
        ``Adaptation``.
    """

    preset: str | None = None
    thinking: Literal["off", "on"] | None = None
    api: ApiName = "chat"
    default_max_tokens: Annotated[int, Meta(ge=1)] = DEFAULT_MAX_TOKENS
    query: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    rename: dict[str, str] = field(default_factory=dict)
    token_limit: TokenLimit | None = None
    least_max_tokens: Annotated[int, Meta(ge=0)] = 0
    stream_options: bool = True
    tool_call_ids: IdStyle = "any"
    thinking_in_history: ThinkingInHistory = "keep"

    def __post_init__(self) -> None:
        for key, names in (("drop", self.drop), ("rename", (*self.rename, *self.rename.values()))):
            if needed := next((name for name in names if name in _NEEDED), None):
                raise SettingsError(f"{key}: every request needs {needed}, so it cannot be dropped or renamed")

    @cached_property
    def adaptation(self) -> Adaptation | None:
        """What is changed in every request; None if nothing is."""
        adaptation = Adaptation(
            frozenset(self.drop),
            self.rename,
            self.token_limit,
            self.least_max_tokens,
            self.stream_options,
            self.tool_call_ids,
            self.thinking_in_history,
        )
        return None if adaptation == Adaptation() else adaptation

    @property
    def gives_logprobs(self) -> bool:
        """Whether log-probabilities can be asked for at all."""
        return "logprobs" not in self.drop and self.api != "messages"

    @property
    def api_terms(self) -> list[Any]:
        """The API, for the terms of a game; empty for chat completions."""
        if self.api == "chat":
            return []
        return [{"api": self.api} | ({"limit": self.default_max_tokens} if self.api == "messages" else {})]

    @property
    def adaptation_terms(self) -> list[Any]:
        """What is changed, for the terms of a game: other requests get other answers. Empty if nothing is changed."""
        if self.adaptation is None:
            return self.api_terms
        names = ("drop", "rename", "token_limit", "least_max_tokens", "tool_call_ids", "thinking_in_history")
        return [*self.api_terms, {name: sorted(self.drop) if name == "drop" else getattr(self, name) for name in names}]


def expanded(table: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The table of a model with the keys that its preset sets, and with its query in its ``base_url``.

    Keys of the table override those of the preset; ``body`` and ``headers`` are merged, and a field that the table
    drops is not added by the preset either.

    Parameters
    ----------
    table: ``[models.NAME]`` as it is in the file.
    path: where it is in the file, for error messages.
    """
    found = dict(table)
    if "preset" in found:
        preset, thinking = _preset(found["preset"], path), found.get("thinking")
        if thinking in ("off", "on", None):
            found = _with_preset(found, preset, path)
    elif "thinking" in found:
        raise SettingsError(f"{path}.thinking needs a preset, which knows the fields for it: add preset, or use body")
    if "query" in found:
        found["query"] = query = _query(found["query"], f"{path}.query")
        if isinstance(found.get("base_url"), str) and query:
            found["base_url"] = with_query(found["base_url"], query)
    return found


def _preset(name: object, path: str) -> Preset:
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    close = get_close_matches(str(name), PRESETS, n=1)
    meant = f", did you mean {close[0]}?" if close else "."
    raise SettingsError(f"{path}.preset: there is no preset {name!r}{meant} The presets are {', '.join(PRESETS)}")


def _with_preset(table: dict[str, Any], preset: Preset, path: str) -> dict[str, Any]:
    thinking = table.get("thinking")
    if preset.fields(thinking) is None:
        raise SettingsError(
            f"{path}.thinking: models of the preset {table['preset']} cannot be set to thinking = {thinking!r}: choose "
            "another model for this role, or set its fields in body"
        )
    settings = preset.settings(thinking)
    dropped, body = table.get("drop", ()), table.get("body", {})
    if isinstance(body, Mapping) and isinstance(dropped, list | tuple):
        own = {name: value for name, value in settings["body"].items() if name not in dropped}
        settings["body"] = merged(own, body)
    found = {**settings, **table, "body": settings["body"] if isinstance(body, Mapping) else body}
    headers = found.get("headers", {})
    if preset.key_header and "api_key" in found and isinstance(headers, Mapping):
        found["headers"] = {preset.key_header: found.pop("api_key"), **headers}
    return found


def _query(values: object, path: str) -> dict[str, str]:
    query: dict[str, str] = {}
    for name, value in as_table(values, path).items():
        try:
            query[name] = Secret.read(value)
        except SettingsError as error:
            raise SettingsError(f"{path}.{name}: {error}") from error
    return query


def with_roles(models: object, routes: object) -> object:
    """The tables of all models; one that has a preset and does not say whether it thinks gets that from its role.

    The draft of a route does not think, and the expert does. A model that is both must be two tables.

    Parameters
    ----------
    models, routes: the tables ``models`` and ``routes`` of the file.
    """
    if not isinstance(models, Mapping) or not isinstance(routes, Mapping):
        return models
    roles: dict[str, set[str]] = {}
    for route in routes.values():
        for name, thinking in _roles(route):
            roles.setdefault(name, set()).add(thinking)
    found = dict(models)
    for name, table in models.items():
        if not isinstance(table, Mapping) or "preset" not in table or "thinking" in table:
            continue
        if len(wanted := roles.get(name, set())) == 2:
            raise SettingsError(
                f"models.{name}.thinking is missing, and routes use this model both as draft and as expert: make two "
                'tables with the same preset and model, one with thinking = "off" for drafts and one with "on" for '
                "experts"
            )
        for thinking in wanted:
            found[name] = {**table, "thinking": thinking}
    return found


def _roles(route: object) -> Iterator[tuple[str, str]]:
    if not isinstance(route, Mapping):
        return
    cascade = route.get("models")
    if isinstance(cascade, list) and cascade:
        *earlier, last = cascade
        yield from ((name, "off") for name in earlier if isinstance(name, str))
        if isinstance(last, str):
            yield last, "on"
    for key, thinking in (("draft", "off"), ("expert", "on")):
        if isinstance(name := route.get(key), str):
            yield name, thinking
