"""Rows of a table from pairs of answers: the uncertainty of the draft by every score, and its loss."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.collecting.draft_scores import DEFAULT, DraftScores, score_draft
from bpac.errors import NoScore
from bpac.importing.call import LoggedCall
from bpac.importing.fields import text_of
from bpac.importing.formats.rows import FEATURE
from bpac.importing.pairing import Pair
from bpac.losses import compared_loss, correctness_loss
from bpac.replay.tables.reading import LONGEST_WORD, number_in, verdict_in
from bpac.scores import confidence_in_words, stated_confidence, without_confidence

# The score that the log itself has.
GIVEN_SCORE = "given"
# Scores from the best to use on: the log's own, from log-probabilities, and as the draft states it.
SCORES = (
    GIVEN_SCORE, "mean_token_probability", "perplexity", "entropy", "verbalized_words", "verbalized",
)  # fmt: skip
NO_VERDICT = "the answers cannot be compared"
CUT_OFF = "an answer was cut off or refused"
NO_LOSS = "the row has no loss"


@dataclass(slots=True)
class GradedPair:
    """A row of the table before its score is chosen.

    Parameters
    ----------
    place: where the draft was read.
    trace: the id of the request; empty if there is none.
    scores: the uncertainty of the draft by score, and why it has none from log-probabilities.
    loss: its loss; none if it is unknown.
    unknown: why the loss is unknown.
    draft_tokens, expert_tokens: the tokens of the answers, where they are known.
    columns: further values: verdicts, category, features.
    """

    place: str
    trace: str
    scores: DraftScores
    loss: float | None
    unknown: str = ""
    draft_tokens: float | None = None
    expert_tokens: float | None = None
    columns: dict[str, Any] = field(default_factory=dict)


def scored(call: LoggedCall, keep_tokens: bool) -> DraftScores:
    """The uncertainty of a draft by every score that its record allows, and why it has none from log-probabilities.

    Parameters
    ----------
    call: the draft; its tokens are dropped, because those of a whole log would not fit in memory.
    keep_tokens: whether to keep them.
    """
    scores, why = _given_score(call), "the row has none"
    if call.answer is not None:
        found = score_draft(Question("", ""), call.answer)
        scores, why = scores | found.known, found.unknown.get(DEFAULT, "")
        for name, confidence in (("verbalized_words", confidence_in_words), ("verbalized", stated_confidence)):
            try:
                scores[name] = 1.0 - confidence(call.answer.text)
            except NoScore:
                continue
        if not keep_tokens:
            call.answer = replace(call.answer, tokens=None)
    return DraftScores(scores, {DEFAULT: why} if why else {})


def _given_score(call: LoggedCall) -> dict[str, float]:
    if call.given.get("uncertainty") not in (None, ""):
        return {GIVEN_SCORE: number_in(call.place, call.given, "uncertainty", 1.0)}
    if call.given.get("confidence") not in (None, ""):
        return {GIVEN_SCORE: 1.0 - number_in(call.place, call.given, "confidence", 1.0)}
    return {}


def graded(pair: Pair, scores: DraftScores) -> GradedPair:
    """The row of a pair.

    Parameters
    ----------
    pair: the two calls, both with an answer.
    scores: the uncertainty of the draft by score.
    """
    draft, expert = _plain(pair.draft), _plain(pair.expert)
    given = {**pair.expert.given, **pair.draft.given}
    row = _row(pair.draft, scores, given)
    if row.loss is None and "loss" not in given:
        row.loss = compared_loss(draft, expert, text_of(given.get("reference")) or None)
        row.unknown = "" if row.loss is not None else NO_VERDICT if draft.finished and expert.finished else CUT_OFF
    row.draft_tokens = draft.completion_tokens or row.draft_tokens
    row.expert_tokens = expert.completion_tokens or row.expert_tokens
    return row


def graded_row(call: LoggedCall) -> GradedPair:
    """The row of a call that has the loss of a whole question."""
    return _row(call, scored(call, keep_tokens=False), call.given)


def _row(call: LoggedCall, scores: DraftScores, given: dict[str, Any]) -> GradedPair:
    row = GradedPair(call.place, call.trace, scores, None)
    for name in ("draft_correct", "expert_correct"):
        if given.get(name) not in (None, ""):
            row.columns[name] = int(verdict_in(call.place, given, name))
    if given.get("loss") not in (None, ""):
        row.loss = number_in(call.place, given, "loss", 1.0)
    elif {"draft_correct", "expert_correct"} <= set(row.columns):
        row.loss = correctness_loss(row.columns["draft_correct"] == 1, row.columns["expert_correct"] == 1)
    else:
        row.unknown = NO_LOSS
    for name in ("draft_tokens", "expert_tokens"):
        if given.get(name) not in (None, ""):
            setattr(row, name, number_in(call.place, given, name, float("inf")))
    row.columns |= {name: value for name, value in given.items() if name.startswith(FEATURE)}
    if text_of(given.get("category")):
        row.columns["category"] = text_of(given["category"])[:LONGEST_WORD]
    return row


def _plain(call: LoggedCall) -> Answer:
    """The answer of a call without the confidence that it states."""
    answer = call.answer or Answer("")
    return replace(answer, text=without_confidence(answer.text))


def best_score(known: Counter[str]) -> str:
    """The score that most rows have; among equals the first of ``SCORES``.

    Parameters
    ----------
    known: how many rows have each score.

    >>> best_score(Counter({"entropy": 3, "mean_token_probability": 3}))
    'mean_token_probability'
    """
    return max(SCORES, key=lambda name: known[name])
