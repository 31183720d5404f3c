"""The option --learn of commands that replay or draw from tables."""

import argparse
from dataclasses import replace

from bpac.errors import InputError
from bpac.replay.router_factory import learning_for
from bpac.replay.tables.table import Table
from bpac.routing.policies import Policy, Portfolio

COLUMNS = ("feature_NAME", "other scores", "draft_tokens", "category", "task", "segment", "finish_reason")


def add_learn_option(command: argparse.ArgumentParser, default: str) -> None:
    """Add --learn and --no-learn.

    Parameters
    ----------
    command: the command.
    default: when it learns without the option.
    """
    command.add_argument(
        "--learn",
        action=argparse.BooleanOptionalAction,
        help=f"learn a score on the way from the columns that are known before the decision: "
        f"{', '.join(COLUMNS)} (default: {default})",
    )


def chosen_learning(policy: Policy, table: Table | None, wanted: bool | None) -> Policy:
    """The policy, with a score that is learned from the features of the table, where that is wanted.

    Parameters
    ----------
    policy: the policy without it.
    table: the table; none where queries are drawn from no table.
    wanted: the option --learn; none if it was not given.
    """
    learning = learning_for(policy, table) if table is not None else policy
    if wanted and learning is policy:
        if table is None or not table.features:
            found = "and this one has none" if table is not None else "given with --table"
            columns = f"{', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}"
            raise InputError(f"--learn needs a table with columns to learn from, {found}: {columns}")
        raise InputError("--learn needs the policy portfolio with --assume iid: leave out --policy and --assume")
    if wanted is None:
        # A table with coins prescribes what each decision must be.
        default = isinstance(policy, Portfolio) and replace(policy, dither=0.0) == Portfolio()
        wanted = default and table is not None and table.coin is None
    return learning if wanted else policy
