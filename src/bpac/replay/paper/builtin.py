"""The paper's figures on the built-in tables, with every number that the paper prints."""

from collections.abc import Sequence
from dataclasses import replace

from bpac.replay.paper.figures import (
    calibrated_on_hard,
    ends_above,
    ends_close,
    figure_1,
    figure_2,
    figure_3,
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    pac_breaks,
    table_2,
)
from bpac.replay.studies.comparison import Comparison, Part
from bpac.replay.studies.methods import B_PAC
from bpac.replay.studies.reporting.statements import Printed, Statement

MAGPIE, BBH = Part("Magpie", "magpie-like"), Part("BBH", "bbh-like")
MMLU, MATH = Part("MMLU-Pro", "mmlu-pro-like"), Part("MATH", "math-like")
COMBINED = Part("Magpie and BBH", "bbh-then-magpie")
CHANGED = Part("MMLU-Pro, then BBH", "mmlu-pro-then-bbh")
SCORES = {"perplexity": "perplexity", "entropy": "entropy"}
ER, ECP, TP = "empirical_risk", "expert_call_rate", "token_ratio"


def _also(comparison: Comparison, *statements: Statement, text: str = "") -> Comparison:
    return replace(
        comparison, statements=(*statements, *comparison.statements), text=f"{text} {comparison.text}".strip()
    )


def _row(part: Part, method: str, values: Sequence[tuple[str, str, str]]) -> list[Printed]:
    return [Printed(part.label, method, metric, mean, std) for metric, mean, std in values]


FIGURE_1 = _also(
    figure_1((COMBINED,)),
    Printed(COMBINED.label, B_PAC, ECP, "18.99"),
    Printed(COMBINED.label, B_PAC, TP, "58.63"),
    calibrated_on_hard(COMBINED.label),
    text=(
        "Built-in table bbh-then-magpie: 50 hard questions, which are the whole calibration set of offline PAC, and "
        "then 4,379 others. The paper does not print how it combined its benchmarks."
    ),
)
FIGURE_2 = _also(
    figure_2((CHANGED,), change=1500),
    pac_breaks(CHANGED.label),
    text="Built-in table mmlu-pro-then-bbh: 1,500 questions like those of MMLU-Pro, then 3,000 like those of BBH.",
)
FIGURE_3 = _also(
    figure_3((MMLU, BBH)),
    Printed(MMLU.label, B_PAC, ECP, "47.04"),
    Printed(MMLU.label, B_PAC, TP, "78.07"),
)
TABLE_2 = _also(
    table_2((MAGPIE, MMLU), SCORES),
    *_row(MAGPIE, f"{B_PAC}, perplexity", [(ER, "0.0551", "0.007"), (ECP, "22.76", "7.57"), (TP, "61.69", "7.22")]),
    *_row(MAGPIE, f"{B_PAC}, entropy", [(ER, "0.0552", "0.006"), (ECP, "23.12", "6.51"), (TP, "61.84", "6.18")]),
    *_row(MMLU, f"{B_PAC}, perplexity", [(ER, "0.0319", "0.011"), (ECP, "43.24", "8.19"), (TP, "75.12", "9.26")]),
    *_row(MMLU, f"{B_PAC}, entropy", [(ER, "0.0316", "0.012"), (ECP, "43.08", "8.66"), (TP, "74.59", "9.83")]),
)
FIGURE_5 = figure_5((MAGPIE, BBH, MMLU, MATH))
FIGURE_6 = _also(figure_6((MAGPIE, MATH)), ends_above(MAGPIE.label), *ends_close(MATH.label))
FIGURE_7 = figure_7((MMLU, MATH))
FIGURE_8 = figure_8((MMLU, MATH))
FIGURE_9 = figure_9((MAGPIE, MATH))
