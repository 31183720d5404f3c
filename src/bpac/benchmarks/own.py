"""Own questions: prompts or whole conversations from a file, with correct answers where they are known.

A row has ``messages`` (chat messages) or a text (``prompt``, ``question`` or ``input``), and may have ``id``, the
correct answer (``reference`` or ``answer``) and ``category``. Models are sent exactly that, without instructions.
Answers are compared with the correct answer if there is one, otherwise drafts are compared with the expert's answer.
"""

from pathlib import Path

from bpac.benchmarks.benchmark import Benchmark, Message, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow
from bpac.errors import InputError
from bpac.grading.equality import same_final
from bpac.grading.text.answer_text import Verdict

PROMPTS = ("prompt", "question", "input")


class OwnQuestions(Benchmark):
    """Questions that come from a file only."""

    __slots__ = ()

    @property
    def compares_answers(self) -> bool:
        """Whether drafts are compared with the expert's answer if a question has no correct answer."""
        return True

    def load(self, path: str | Path | None = None) -> tuple[Question, ...]:
        """The questions of a ``.jsonl`` or ``.json`` file (each also ``.gz``)."""
        if path is None:
            raise InputError("own questions are read from a file: give its path")
        return Benchmark.load(self, path)

    def ask(self, question: Question) -> list[Message]:
        """The chat messages that ask a question."""
        return list(question.messages) or Benchmark.ask(self, question)


def read_question(row: DatasetRow) -> Question:
    """The question of a row."""
    reference = row.optional("reference", "answer") or None
    id_, category = row.id("own", "id"), row.optional("category")
    if row.fields.get("messages") is None:
        return Question(id_, row.text(*PROMPTS), reference, category)
    messages = row.fields["messages"]
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise row.wrong("messages", "a list of chat messages")
    return Question(id_, last_text(messages), reference, category, messages=tuple(messages))


def last_text(messages: list[Message]) -> str:
    """The text of the last message of the user, or of the last message.

    >>> last_text([{"role": "user", "content": [{"type": "text", "text": "6 · 7?"}]}])
    '6 · 7?'
    """
    asked = [message for message in messages if message.get("role") == "user"] or messages
    content = asked[-1].get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _instruct(question: Question) -> str:
    return question.prompt


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    if question.reference is None or not finished:
        return None
    return same_final(text, question.reference)


OWN = OwnQuestions("own", HubSource("own"), read_question, _instruct, _verdict)
