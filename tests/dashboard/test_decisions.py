"""A decision in words: what was decided and why, and the outcome."""

from typing import Any

import pytest

from bpac.dashboard.decisions import DecisionView
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved

AUDITED = (
    "Uncertainty 0.31 is below the threshold 0.42, but it was selected for a random audit (probability 5 %), so the "
    "expert was called to check the draft"
)


def document_of(outcome: Resolved | None = None, *, owed: bool = False, **fields: Any) -> dict[str, Any]:
    """The document of a decision; by default a random audit with a probability of 5 %."""
    values: dict[str, Any] = {
        "step": 7, "uncertainty": 0.31, "threshold": 0.42, "propensity": 0.05, "least_propensity": 0.05,
        "call_expert": True, "serve_draft": False,
    }  # fmt: skip
    return DecisionView(Decision(**(values | fields)), outcome, owed).document("dec-1-7-x", 1, "homework", "")


@pytest.mark.parametrize(
    ("document", "state", "by", "why"),
    [
        (
            document_of(owed=True), "open", "expert",
            f"{AUDITED}. The draft is not graded yet and counts as a loss of 1 until it is.",
        ),
        (
            document_of(Resolved(7, 0.25), serve_draft=True), "resolved", "draft",
            f"{AUDITED}; the caller received the draft. "
            "The loss of the draft compared with the expert's answer is 0.25.",
        ),
        (
            document_of(call_expert=False, serve_draft=True), "kept", "draft",
            "Uncertainty 0.31 is below the threshold 0.42, so the draft was kept; it was not selected for a random "
            "audit (probability 5 %). The draft was not graded, so its loss is unknown.",
        ),
        (
            document_of(Resolved(7, 0.0), threshold=0.0, propensity=1.0), "resolved", "expert",
            "Uncertainty 0.31; the threshold was 0, so the expert was called, as for every request. "
            "The loss of the draft compared with the expert's answer is 0.",
        ),
        (
            document_of(Resolved(7, None, "deadline"), uncertainty=0.42, propensity=1.0), "forfeited", "expert",
            "Uncertainty 0.42 is not below the threshold 0.42, so the expert was called. "
            "The draft could not be graded (deadline) and counts as a loss of 1.",
        ),
        (
            document_of(Resolved(7, None, "expert failed", draft_served=True), propensity=1.0, uncertainty=0.5),
            "forfeited", "draft",
            "Uncertainty 0.5 is not below the threshold 0.42, so the expert was called. The draft could not be graded "
            "(expert failed) and counts as a loss of 1; the caller received the draft, which the certificate counts in "
            "full.",
        ),
        (
            document_of(), "forfeited", "expert",
            f"{AUDITED}. The draft could not be graded (crowded out) and counts as a loss of 1.",
        ),
        (
            document_of(Resolved(7, None, refused=True, draft_served=True)), "refused", "draft",
            f"{AUDITED}. The expert refused to answer, so the request counts neither for nor against any threshold; "
            "the caller received the draft, which was accepted.",
        ),
    ],
)  # fmt: skip
def test_each_outcome_is_explained_in_words(document: dict[str, Any], state: str, by: str, why: str) -> None:
    """Each way in which a request can end has its own text."""
    assert (document["state"], document["answered_by"], document["why"]) == (state, by, why)


def test_scores_that_are_close_have_enough_digits() -> None:
    """No text says that 0.42 is below 0.42."""
    assert "Uncertainty 0.4199999 is below the threshold 0.42," in document_of(uncertainty=0.4199999)["why"]


def test_time_and_tokens_come_from_the_notes() -> None:
    """They come from the notes of the decision and of its outcome, and are None where there is no note."""
    decision = Decision(7, 0.5, 0.4, 1.0, 0.05, call_expert=True, serve_draft=False)
    notes = {"at": 12.5, "draft_tokens": 3}, {"at": 13.0, "expert_tokens": 40, "judge_tokens": 5}
    document = DecisionView(decision, Resolved(7, 1.0), False, *notes).document("dec-1-7-x", 1, "homework", "de")
    assert [document[name] for name in ("at", "draft_tokens", "expert_tokens", "judge_tokens")] == [12.5, 3, 40, 5]
    bare = DecisionView(decision).document("dec-1-7-x", 1, "homework", "de")
    assert [bare[name] for name in ("at", "draft_tokens", "expert_tokens", "judge_tokens")] == [0.0, None, None, None]
