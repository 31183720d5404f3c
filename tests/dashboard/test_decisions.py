"""A decision in words: what was decided, by which chance, and what came of it."""

from typing import Any

import pytest

from bpac.dashboard.decisions import DecisionView
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved


def told(outcome: Resolved | None = None, *, owed: bool = False, **fields: Any) -> dict[str, Any]:
    """The document of a decision that differs from an audit by a coin of 5 %."""
    values: dict[str, Any] = {
        "step": 7, "uncertainty": 0.31, "threshold": 0.42, "propensity": 0.05, "least_propensity": 0.05,
        "call_expert": True, "serve_draft": False,
    }  # fmt: skip
    return DecisionView(Decision(**(values | fields)), outcome, owed).document("dec-1-7-x", 1, "homework", "")


@pytest.mark.parametrize(
    ("document", "state", "by", "why"),
    [
        (
            told(owed=True), "open", "expert",
            "Uncertainty 0.31 is below the threshold 0.42; the coin (5 %) called the expert to check the draft. "
            "Its outcome is still to come, and counts as a loss of 1 until it does.",
        ),
        (
            told(Resolved(7, 0.25), serve_draft=True), "resolved", "draft",
            "Uncertainty 0.31 is below the threshold 0.42; the coin (5 %) called the expert to check the draft, "
            "behind the draft that was served. The draft's loss against the expert is 0.25.",
        ),
        (
            told(call_expert=False, serve_draft=True), "kept", "draft",
            "Uncertainty 0.31 is below the threshold 0.42, so the draft was kept; the coin (5 %) did not ask for a "
            "check. Its loss is never seen.",
        ),
        (
            told(Resolved(7, 0.0), threshold=0.0, propensity=1.0), "resolved", "expert",
            "Uncertainty 0.31: no threshold was open, so the expert was called, as for every query. "
            "The draft's loss against the expert is 0.",
        ),
        (
            told(Resolved(7, None, "deadline"), uncertainty=0.42, propensity=1.0), "forfeited", "expert",
            "Uncertainty 0.42 is not below the threshold 0.42, so the expert was called. "
            "Its outcome was given up (deadline), which counts as a loss of 1.",
        ),
        (
            told(Resolved(7, None, "expert failed", draft_served=True), propensity=1.0, uncertainty=0.5),
            "forfeited", "draft",
            "Uncertainty 0.5 is not below the threshold 0.42, so the expert was called. Its outcome was given up "
            "(expert failed), which counts as a loss of 1; the caller got the draft, which the certificate counts in "
            "full.",
        ),
        (
            told(), "forfeited", "expert",
            "Uncertainty 0.31 is below the threshold 0.42; the coin (5 %) called the expert to check the draft. "
            "Its outcome was given up (crowded out), which counts as a loss of 1.",
        ),
        (
            told(Resolved(7, None, refused=True, draft_served=True)), "refused", "draft",
            "Uncertainty 0.31 is below the threshold 0.42; the coin (5 %) called the expert to check the draft. "
            "The expert refused to answer, so the round pays nothing on average at any threshold; the caller got the "
            "draft, which was accepted.",
        ),
    ],
)  # fmt: skip
def test_in_words(document: dict[str, Any], state: str, by: str, why: str) -> None:
    """Each way a round can go has its own words."""
    assert (document["state"], document["answered_by"], document["why"]) == (state, by, why)


def test_scores_that_look_alike_are_told_apart() -> None:
    """As many digits as it takes: nobody should read that 0.42 is below 0.42."""
    assert "Uncertainty 0.4199999 is below the threshold 0.42;" in told(uncertainty=0.4199999)["why"]


def test_notes() -> None:
    """Time and tokens come from the notes of the two entries, and are none where nobody noted them."""
    decision = Decision(7, 0.5, 0.4, 1.0, 0.05, call_expert=True, serve_draft=False)
    notes = {"at": 12.5, "draft_tokens": 3}, {"at": 13.0, "expert_tokens": 40, "judge_tokens": 5}
    document = DecisionView(decision, Resolved(7, 1.0), False, *notes).document("dec-1-7-x", 1, "homework", "de")
    assert [document[name] for name in ("at", "draft_tokens", "expert_tokens", "judge_tokens")] == [12.5, 3, 40, 5]
    bare = DecisionView(decision).document("dec-1-7-x", 1, "homework", "de")
    assert [bare[name] for name in ("at", "draft_tokens", "expert_tokens", "judge_tokens")] == [0.0, None, None, None]
