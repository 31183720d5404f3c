"""What ``bpac reproduce`` measures on real models: prompting methods on the local model, and SmolLM2 as a judge."""

import json
from pathlib import Path

from bpac.errors import BpacError
from bpac.grader_accuracy.judge_agreement import JudgeAgreement
from bpac.grader_accuracy.measure_judge import measurement_key
from bpac.local.prompting import measure_prompting
from bpac.local.public_model import JUDGED_PAIRS, NAME, ONLY_MARKS, measure_smollm2_judge
from bpac.output_files import whole_file
from bpac.replay.paper.table_1 import PromptedAnswers

QUESTIONS = 500


def measured_prompting(runs: Path) -> list[PromptedAnswers]:
    """Chain of Draft, NoThinking and direct answers of the local model, graded against its answers after thinking.

    Parameters
    ----------
    runs: the folder in which answers are kept; what is found there is not asked again.
    """
    rows = measure_prompting(runs / "prompting", QUESTIONS)
    where = f"bpac collect, local model, {QUESTIONS} held-out questions"
    return [
        PromptedAnswers(row.method, where, row.loss, row.token_ratio, row.accuracy)
        for row in rows
        if row.loss is not None
    ]


def measured_judge(runs: Path) -> JudgeAgreement:
    """SmolLM2 as a judge of answers with a known preference.

    Parameters
    ----------
    runs: the folder in which the result is kept.
    """
    kept = runs / f"judge-{measurement_key(NAME, JUDGED_PAIRS, ONLY_MARKS)}.json"
    if kept.is_file():
        return JudgeAgreement.from_json(json.loads(kept.read_text(encoding="utf-8")))
    found, reason = measure_smollm2_judge()
    if found is None:
        raise BpacError(reason)
    with whole_file(kept) as unfinished:
        unfinished.write_text(json.dumps(found.to_json()), encoding="utf-8")
    return found
