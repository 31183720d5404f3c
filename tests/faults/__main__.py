"""Print what faults under load lead to; the exit code is 1 if anything was counted twice, or is missing."""

import argparse
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from tests.faults.table import SCENES, all_rows, printed


def main() -> int:
    """Let every fault happen, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    add = parser.add_argument
    add("--times", type=int, default=20, help="how often each fault happens (default: 20)")
    add("--only", action="append", choices=SCENES, help="some of the processes (default: all)")
    add("--keep", type=Path, metavar="DIRECTORY", help="keep all files in a new directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, tqdm(desc="faults", unit="fault", file=sys.stderr) as bar:
        directory = options.keep or Path(name)
        directory.mkdir(exist_ok=True)

        def done(fault: str) -> None:
            bar.set_postfix_str(fault)
            bar.update()

        rows = all_rows(directory, options.times, options.only or SCENES, done)
    sys.stdout.write(printed(rows) + "\n")
    for row in rows:
        for what in row.wrong:
            sys.stdout.write(f"WRONG after {row.fault}: {what}\n")
    return int(any(row.bad or len(row.seconds) < options.times for row in rows))


if __name__ == "__main__":
    sys.exit(main())
