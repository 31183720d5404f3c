"""Real clients, unmodified but for their address: each gets the right values, and each of its requests is a round."""

import pytest

from tests.clients.catalogue import ROWS, Cell, Row
from tests.clients.run import Found
from tests.clients.table import COMMAND, PAGE, page

CELLS = [cell for row in ROWS for cell in row.cells()]


@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
def test_a_client_gets_what_it_asked_for(found: Found, cell: Cell) -> None:
    """Text, calls, objects, headers and errors are those of the model that answers, the draft's and the expert's."""
    (program,) = {row.program for row in ROWS if cell in row.cells()}
    assert cell in found.errors, f"it was not checked; its program wrote:\n{found.outputs[program]}"
    assert not found.errors[cell], found.errors[cell]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.client} {row.door}")
def test_every_request_of_a_client_is_a_round(found: Found, row: Row) -> None:
    """Each answer is in the journal of the route, decided by a score and, if the expert was called, with an outcome."""
    for who, called in (("draft", 0), ("expert", row.rounds)):
        game = found.games[row.route(who)]
        assert (game["steps"], game["expert_calls"]) == (row.rounds, called)
        assert (game["unscored"]["requests"], game["refused"], game["owed"], game["forfeits"]) == (0, 0, 0, {})


def test_the_catalogue_lists_every_check(found: Found) -> None:
    """No program checks what the table leaves out."""
    assert set(found.errors) == set(CELLS)


def test_the_table_is_what_the_run_found(found: Found) -> None:
    """docs/clients.md says what works."""
    assert PAGE.read_text(encoding="utf-8") == page(found.errors), f"write it again: {COMMAND}"
