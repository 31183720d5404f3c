"""The command ``audit``: check an exported journal."""

import argparse
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from bpac.cli.games.archived_files import archived_before, archives_in, in_order, of_one_game
from bpac.cli.output import add_json_option, counted, print_report
from bpac.errors import InputError, JournalError
from bpac.gateway.config.file import load_config
from bpac.routing.audit.audit import Audit, audit_journal, claimed_heads
from bpac.routing.audit.coins import CoinCounts
from bpac.routing.coins import COMMITTED_BLOCK
from bpac.stores import open_store
from bpac.stores.export import chosen_game, journal_lines
from bpac.stores.line_files import read_lines

FINE, FAILED = 0, 1
MOST_SHOWN = 20


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    audit = commands.add_parser(
        "audit", help="check an exported journal: recompute its thresholds, certificate, hashes and random coins"
    )
    audit.add_argument(
        "journal",
        metavar="JOURNAL",
        type=Path,
        nargs="+",
        help="journal file written by bpac export, or the TOML file of a gateway, whose store is read; if its first "
        "entries are archived, the archives in order before it, or the directories that they are in; lines are counted "
        "through all files",
    )
    audit.add_argument(
        "--game", type=int, metavar="N", help="number of the game; required if a directory or a store has several"
    )
    audit.add_argument(
        "--head",
        action="append",
        default=[],
        metavar="HEX",
        type=_head,
        help="head (hash) that an earlier audit or claim reported; the audit fails if the journal does not contain it; "
        "can be given several times",
    )
    audit.add_argument(
        "--claims",
        type=Path,
        metavar="FILE",
        help="earlier export of the same game; the audit fails if the journal does not contain the heads in its claims",
    )
    audit.add_argument(
        "--strict",
        action="store_true",
        help="fail also if hashes are missing or the journal did not commit to its random coins beforehand",
    )
    add_json_option(audit)
    audit.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> int:
    noted = set(options.head)
    if options.claims is not None:
        with _read(options.claims) as file:
            noted |= claimed_heads(file)
    with ExitStack() as opened:
        audit = audit_journal(_lines(options, opened), noted)
    names = ", ".join(map(str, options.journal))
    print_report(options, asdict(audit) | {"unproved": audit.unproved}, f"{names}: {_text(audit)}".split("\n"))
    return FAILED if audit.differences or (options.strict and audit.unproved) else FINE


def _lines(options: argparse.Namespace, opened: ExitStack) -> Iterator[str]:
    """The lines of the journal, from all files in order; archives in directories come first."""
    directories = [path for path in options.journal if path.is_dir()]
    files = [
        opened.enter_context(_stored(path, options.game) if path.suffix == ".toml" else _read(path))
        for path in options.journal
        if path not in directories
    ]
    lines = chain.from_iterable(files)
    if not directories:
        return lines
    first = next(lines, None)
    archives = of_one_game(archives_in(directories), options.game)
    paths = in_order(archives, None if first is None else archived_before(first))
    if first is None and not paths:
        raise InputError(f"there is no archive in {', '.join(map(str, directories))}")
    earlier = [opened.enter_context(_read(path)) for path in paths]
    return chain(*earlier, [] if first is None else [first], lines)


@contextmanager
def _stored(path: Path, number: int | None) -> Iterator[Iterator[str]]:
    """The journal in the store of a gateway, which may be running."""
    with closing(open_store(load_config(path, secrets=False).store, read_only=True)) as store:
        game = chosen_game(store, None, None, number)
        yield (f"{line}\n" for line in journal_lines(store, game))


@contextmanager
def _read(path: Path) -> Iterator[Iterator[str]]:
    """A file to read; errors in it are reported with its name."""
    try:
        path.open("rb").close()  # what is missing is said before anything is read
        with closing(read_lines(path)) as lines:
            yield lines
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a journal: write one with bpac export CONFIG --out FILE") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except JournalError as error:
        raise JournalError(f"{path}: {error}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _head(text: str) -> str:
    """A head on the command line."""
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError(f"a head has 64 hexadecimal digits, got {text!r}")
    return text.lower()


def _text(audit: Audit) -> str:
    rounds = max(1, audit.certificate["rounds"])
    differences, episodes = len(audit.differences), audit.unit == "episode"
    lines = [
        f"recomputed {counted(audit.rounds, 'round')} and {counted(audit.claims, 'claim')}: "
        + (counted(differences, "difference") if differences else "no differences"),
        *(
            f"  line {found.line}: {found.what}"
            + ("" if found.computed is None else f" recorded as {found.recorded}, computed {found.computed}")
            for found in audit.differences[:MOST_SHOWN]
        ),
        *([f"  and {differences - MOST_SHOWN} more"] if differences > MOST_SHOWN else ()),
        *(["  the first difference is probably the cause of the others"] if differences > 1 else ()),
        *(["a round is an episode: later requests of a session follow the decision of its first"] * episodes),
        f"threshold {audit.threshold:.6g}; average loss per {audit.unit} between "
        f"{audit.certificate['lower'] / rounds:.2%} and {audit.certificate['upper'] / rounds:.2%} "
        f"over {counted(audit.certificate['rounds'], 'round')}, "
        f"{audit.certificate['confidence']:.0%} confidence each",
        f"losses counted as 1: {audit.owed} not graded yet, {sum(audit.forfeits.values())} given up",
        *([f"answered by stage: {_stages_text(audit.answered)}"] if audit.answered else ()),
        _coins_text(audit.coins),
        *(f"not proved: {lacking}" for lacking in audit.unproved),
    ]
    if audit.noted:
        lines.append(f"heads given with --head or --claims: {audit.noted} found")
    if audit.head is not None:
        entries = counted(audit.entries, "entry", "entries")
        lines.append(f"head (hash) after {entries}; keep it to detect later changes: {audit.head}")
    return "\n".join(lines)


def _stages_text(answered: Mapping[str, int]) -> str:
    total = max(1, sum(answered.values()))
    return ", ".join(f"{stage} {count / total:.1%}" for stage, count in answered.items())


def _coins_text(coins: CoinCounts) -> str:
    rest = {
        f"can be verified when their block of {COMMITTED_BLOCK} is complete": coins.open,
        "cannot be verified because their key was not revealed": coins.withheld,
        "cannot be verified because the journal did not commit to them": coins.uncommitted,
    }
    return "; ".join([f"coins: {coins.verified} verified", *(f"{count} {why}" for why, count in rest.items() if count)])
