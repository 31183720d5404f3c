"""Prints what ``import bpac`` costs beyond ``import numpy``: ``python -m benchmarks.import_time``."""

import subprocess
import sys

GOAL = 1.5  # times what ``import numpy`` takes
TRIES = 10


def milliseconds(code: str) -> float:
    """Processor time of a new process that runs some code; the least of several tries, which others disturb least."""
    program = f"{code}\nimport time\nprint(time.process_time())"
    times = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(TRIES)]
    return min(1000.0 * float(done.stdout) for done in times)


def main() -> int:
    """Measure and print; 1 if the goal is missed."""
    numpy = milliseconds("import numpy")
    more = milliseconds("import bpac") - numpy
    commands = milliseconds("from bpac.cli.program import build_parser; build_parser()") - numpy
    print("Processor time in a new process, beyond import numpy")
    verdict = (
        f"{'met' if more <= GOAL * numpy else 'MISSED'}: at most {GOAL:g} times import numpy itself, {numpy:.0f} ms"
    )
    print(f"  import bpac        {more:4.0f} ms   ({verdict})")
    print(f"  all command lines  {commands:4.0f} ms   (bpac --help)")
    return int(more > GOAL * numpy)


if __name__ == "__main__":
    sys.exit(main())
