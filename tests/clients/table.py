"""The page docs/clients.md: which clients work by which API, as a run found it."""

from collections.abc import Collection, Iterator

from tests.clients.catalogue import DOORS, ROWS, Cell, Row
from tests.clients.run import ROOT

PAGE = ROOT / "docs" / "clients.md"
COMMAND = ".venv/bin/python -m tests.clients"
# The columns, each with the capabilities that it stands for.
COLUMNS = {
    "text": ("text",),
    "stream": ("stream",),
    "tools": ("tools_whole", "tools_streamed"),
    "structured output": ("structured",),
    "decision headers": ("headers",),
    "errors": ("error",),
    "token count": ("count_tokens",),
}
HEAD = """\
# Clients

These clients work with the gateway if only their address, their key and the model are changed: the model is the name of
a route. The tests run all of them, unmodified, against one gateway with scripted models, and check the values that they
return. `…` is the address of the gateway, such as `http://127.0.0.1:8800`.

| client | API | what to set | {columns} |
| --- | --- | --- | {line} |
"""
FOOT = """
- **text**: a whole answer. **stream**: its parts, as they are generated, which add up to the same text.
- **tools**: a tool call with its arguments, whole and streamed, and the answer to the result of the tool.
- **structured output**: an object of the class or schema that was asked for.
- **decision headers**: the client shows response headers, and so those of [a decision](gateway.md#endpoints),
  `x-bpac-…`. LiteLLM puts `llm_provider-` before their names.
- **errors**: an unknown route raises the client's own exception, with the gateway's message.
- **token count**: the endpoint `/v1/messages/count_tokens`.

**yes** means that it works, both with a draft and with an answer of the expert; **–** that the client has no such
function or does not show it. The APIs are
{doors}.

## Notes

- LlamaIndex's classes `OpenAI` and `Anthropic` accept only names of models that they know: give the route such a name,
  or use `OpenAILike`, which accepts every name.
- LiteLLM does not ask for streams by the Responses API if it does not know the model. It asks for the whole answer and
  cuts it into pieces, and the arguments of tool calls come twice. Tell it about the route:
  `litellm.register_model({{"ROUTE": {{"litellm_provider": "openai", "supports_native_streaming": True}}}})`.
- What to set for LiteLLM's proxy is an entry's `litellm_params` in its `model_list`. It is tested between the gateway
  and the clients of OpenAI and Anthropic.
- What to set for `llm` is an entry of its file `extra-openai-models.yaml`, with `supports_tools` and `supports_schema`.

## How this page is written

The test run writes it: `{command}`, after `make test` has installed the clients. A test fails if
it differs from what the clients do. The clients of OpenAI and Anthropic for Python are tested in their newest versions,
others in those of `tests/clients/requirements.txt` and `tests/clients/node/package.json`.
"""


def page(errors: dict[Cell, str]) -> str:
    """The page, from the checks that were made and what went wrong in each."""
    works = {cell for cell, error in errors.items() if not error}
    head = HEAD.format(columns=" | ".join(COLUMNS), line=" | ".join("---" for _ in COLUMNS))
    listed = ", ".join(f"{name} (`POST {path}`)" for name, path in DOORS.items())
    return head + "".join(f"{line}\n" for line in _lines(works)) + FOOT.format(doors=listed, command=COMMAND)


def _lines(works: Collection[Cell]) -> Iterator[str]:
    for row in ROWS:
        cells = [_cell(row, capabilities, works) for capabilities in COLUMNS.values()]
        yield f"| {row.client} | {row.door} | `{row.setting}` | {' | '.join(cells)} |"


def _cell(row: Row, capabilities: tuple[str, ...], works: Collection[Cell]) -> str:
    has = [Cell(row.client, row.door, capability) for capability in capabilities if capability in row.can]
    if not has:
        return "–"
    return "yes" if all(cell in works for cell in has) else "no"
