"""Results that can be reproduced by name: each writes its numbers as CSV and its picture as PNG and SVG."""

import csv
from collections.abc import Callable
from dataclasses import astuple, fields
from pathlib import Path

from bpac.replay.figures import draw_stall, save
from bpac.replay.stall import StallRow, stall_rows


def reproduce_stall(out: Path) -> list[Path]:
    """The stall of the paper's bet: a table, and a picture over all risks up to ε."""
    out.mkdir(parents=True, exist_ok=True)
    table = out / "stall.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(StallRow)])
        writer.writerows(astuple(row) for row in stall_rows())
    figure = draw_stall(stall_rows(tuple(0.015 + 0.0005 * i for i in range(131))), epsilon=0.08)
    pictures = [out / "stall.png", out / "stall.svg"]
    for picture in pictures:
        save(figure, picture)
    return [table, *pictures]


EXPERIMENTS: dict[str, Callable[[Path], list[Path]]] = {"stall": reproduce_stall}
