"""The gateway's commands."""

import argparse
import csv
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from bpac.errors import InputError, JournalError, MissingExtra
from bpac.gateway.config.file import Config, load_config
from bpac.gateway.games.live_game import standing_of
from bpac.gateway.games.restoring import folded
from bpac.gateway.games.savings import Prices
from bpac.gateway.telemetry.logs import log_as_json
from bpac.output_files import refuse_overwriting, whole_file
from bpac.replay.tables.formats import table_format
from bpac.replay.tables.writing import write_columns
from bpac.routing.audit.audit import Audit, audit_journal, claimed_heads
from bpac.routing.audit.coins import CoinCounts
from bpac.stores import files_of, open_store
from bpac.stores.export import chosen_game, complete_columns, journal_lines, table_rows
from bpac.stores.store import Game, Store

FINE, FAILED = 0, 1


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add serve, status, export and audit to the command line."""
    serve = commands.add_parser("serve", help="run the gateway")
    serve.add_argument("config", metavar="CONFIG", type=Path, help="the TOML file")
    serve.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="info")
    serve.set_defaults(run=_serve)

    status = commands.add_parser("status", help="where a gateway's games stand, running or not")
    status.add_argument("config", metavar="CONFIG", type=Path, help="the TOML file")
    status.add_argument("--json", action="store_true", help="one JSON object on standard output")
    status.set_defaults(run=_status)

    export = commands.add_parser("export", help="write a journal for auditors, or a table for replays")
    export.add_argument("config", metavar="CONFIG", type=Path, help="the TOML file")
    export.add_argument("--route", help="of several")
    export.add_argument("--segment", help="of several")
    export.add_argument("--game", type=int, metavar="N", help="an earlier game, by its number")
    export.add_argument(
        "--format", choices=("journal", "table"), default="journal", help="journal unless told otherwise"
    )
    export.add_argument(
        "--thin", action="store_true", help="a table in which every query is as likely to appear (this is the default)"
    )
    export.add_argument(
        "--all-audits",
        action="store_true",
        help="a table of all audited rounds with their propensity: no sample of the traffic, so replays refuse it",
    )
    export.add_argument("--seed", type=int, default=0, help="random seed of the choice of rows in a table (default: 0)")
    place = "standard output unless told otherwise; a table is written as its name says: .csv, .jsonl, .gz, .parquet"
    export.add_argument("--out", type=Path, metavar="FILE", help=place)
    export.set_defaults(run=_export)

    audit = commands.add_parser(
        "audit", help="compute thresholds, certificate and coins again from an exported journal"
    )
    audit.add_argument("journal", metavar="JOURNAL", type=Path, help="what export wrote")
    audit.add_argument(
        "--head", action="append", default=[], metavar="HEX", type=_head, help="a head noted earlier: it must be in it"
    )
    audit.add_argument(
        "--claims", type=Path, metavar="FILE", help="an earlier export: the heads it claims must be in it"
    )
    audit.add_argument(
        "--strict", action="store_true", help="fail also if hashes are missing or coins were not committed to"
    )
    audit.add_argument("--json", action="store_true", help="one JSON object on standard output")
    audit.set_defaults(run=_audit)


def _serve(options: argparse.Namespace) -> int:
    # Only here: no other command needs a server.
    try:
        from bpac.gateway.server import serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "a package", "gateway") from error
    config = load_config(options.config)
    log_as_json(options.log_level)
    return FINE if serve(config) else FAILED


def _status(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    with _opened(config) as store:
        games = [_standing(store, game, config) for game in _current(store)]
        losses = store.losses()
    if options.json:
        _say(json.dumps({"games": games, "losses": [loss._asdict() for loss in losses]}))
        return FINE
    for loss in losses:
        _say(f"LOST: {loss}; a new game begins with a threshold of 0")
    for game in games:
        certificate, name = game["certificate"], f"{game['route']} {game['segment']}".strip()
        rate = game["expert_call_rate"]
        _say(
            f"{name}: {game['steps']} rounds, {game['state'].replace('_', ' ')}, threshold {game['threshold']:.4g}, "
            f"expert calls {'–' if rate is None else f'{rate:.1%}'}, open {game['owed']}, "
            f"served loss ≤ {certificate['average_upper']:.2%} with {certificate['confidence']:.0%} confidence"
        )
        for line in _left_out(game):
            _say(f"  {line}")
        _say(_savings_text(game["savings"]))
    return FINE


def _left_out(game: Mapping[str, Any]) -> Iterator[str]:
    """Requests that are no rounds, those that the expert refused, and audits without a verdict."""
    unscored = game["unscored"]
    if unscored["requests"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in unscored["reasons"].items())
        yield f"answered by the expert because the draft had no score: {unscored['share']:.1%} ({reasons})"
    if game["refused"]:
        yield f"refused by the expert: {game['refused']}"
    if game["forfeits"]:
        causes = ", ".join(f"{count} {cause}" for cause, count in sorted(game["forfeits"].items()))
        yield f"audits without a verdict: {causes}; of the latest audits of accepted drafts {game['forfeit_share']:.1%}"


def _savings_text(savings: Mapping[str, Any]) -> str:
    """What was saved, in two lines at most."""
    lines = []
    for what, digits in (("tokens", 0), ("money", 2)):
        estimate = savings.get(f"{what}_saved")
        if estimate is None:
            continue
        least, most = (savings[f"{what}_saved_at_{bound}"] for bound in ("least", "most"))
        if most is None:
            above = ""
        elif savings["longest_answer_assumed"] is None:
            above = f", at most {most:,.{digits}f}"
        else:
            assumed = savings["longest_answer_assumed"]
            above = f", at most {most:,.{digits}f} if no answer is longer than {assumed:,.0f} tokens"
        lines.append(
            f"  {what} saved: at least {least:,.{digits}f} with {savings['confidence']:.0%} confidence, "
            f"estimated {estimate:,.{digits}f}{above}"
        )
    return "\n".join(lines)


def _export(options: argparse.Namespace) -> int:
    config = load_config(options.config, secrets=False)
    refuse_overwriting({"--out": options.out}, [options.config, *files_of(config.store)])
    if options.format == "table" and options.out is not None:
        table_format(options.out)
    with _opened(config) as store:
        game = chosen_game(store, options.route, options.segment, options.game)
        for loss in store.losses():
            if loss.game == game.number:
                sys.stderr.write(f"bpac: {loss}: what is exported is what is left\n")
        if options.format == "journal":
            with _output(options.out) as file:
                file.writelines(line + "\n" for line in journal_lines(store, game))
            return FINE
        if options.thin and options.all_audits:
            raise InputError("--thin and --all-audits exclude each other: leave one of them out")
        found = table_rows(store, game, all_audits=options.all_audits, seed=options.seed)
    unknown = found.unknown()
    if not found.graded:
        why = f" ({unknown})" if unknown else ""
        raise InputError(f"no round of this game has been graded yet{why}: there is nothing to put into a table")
    if not found.rows:
        raise InputError("no round was chosen for the table: give another --seed, or --all-audits")
    rows = complete_columns(found.rows)
    if options.out is not None:
        write_columns({name: [row[name] for row in rows] for name in rows[0]}, options.out)
    else:
        writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if unknown:
        sys.stderr.write(f"bpac: requests whose loss is not known: {unknown}\n")
    if missing := found.rows[0].keys() - rows[0].keys():
        sys.stderr.write(f"bpac: columns left out, because some rounds lack them: {', '.join(sorted(missing))}\n")
    return FINE


def _audit(options: argparse.Namespace) -> int:
    noted = set(options.head)
    if options.claims is not None:
        with _read(options.claims) as file:
            noted |= claimed_heads(file)
    with _read(options.journal) as file:
        audit = audit_journal(file, noted)
    if options.json:
        _say(json.dumps(asdict(audit) | {"unproved": audit.unproved}))
    else:
        _say(f"{options.journal}: {_audit_text(audit)}")
    return FAILED if audit.differences or (options.strict and audit.unproved) else FINE


@contextmanager
def _read(path: Path) -> Iterator[IO[str]]:
    """A file to be read; what is wrong with it is said with its name."""
    try:
        with path.open(encoding="utf-8") as file:
            yield file
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    except JournalError as error:
        raise JournalError(f"{path}: {error}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _head(text: str) -> str:
    """A head on the command line."""
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError(f"a head has 64 hexadecimal digits, got {text!r}")
    return text.lower()


def _audit_text(audit: Audit) -> str:
    lines = [
        f"{audit.rounds} rounds and {audit.claims} claims computed again: "
        + (f"{len(audit.differences)} differences" if audit.differences else "all as recorded"),
        *(
            f"  line {found.line}: {found.what}"
            + ("" if found.computed is None else f" recorded as {found.recorded}, computed {found.computed}")
            for found in audit.differences[:20]
        ),
        f"threshold {audit.threshold:.6g}; loss served between {audit.certificate['lower']:.6g} and "
        f"{audit.certificate['upper']:.6g} in {audit.certificate['rounds']} rounds, "
        f"each with {audit.certificate['confidence']:.0%} confidence",
        f"{audit.owed} rounds without an outcome and {sum(audit.forfeits.values())} given up, all counted as loss 1",
        _coins_text(audit.coins),
        *(f"not proved: {lacking}" for lacking in audit.unproved),
    ]
    if audit.noted:
        lines.append(f"noted heads: {audit.noted} found where they must be")
    if audit.head is not None:
        lines.append(f"head after {audit.entries} entries, to be noted: {audit.head}")
    return "\n".join(lines)


def _coins_text(coins: CoinCounts) -> str:
    checked = f"coins: {coins.verified} rounds computed again from keys that were committed to before them"
    rest = {"wait for the end of their block": coins.open, "have a key that is withheld": coins.withheld}
    return ", ".join([checked, *(f"{count} {why}" for why, count in rest.items() if count)])


def _standing(store: Store, game: Game, config: Config) -> dict[str, Any]:
    kept = folded(store, game)
    route = config.routes.get(game.route)
    prices = None if route is None else Prices.of(route)
    numbers = {"route": game.route, "segment": game.segment, "game": game.number}
    return numbers | standing_of(kept.router, kept.history) | {"savings": kept.savings.report(prices)}


def _current(store: Store) -> list[Game]:
    # A gateway that is just starting has opened a game before it writes to its journal.
    begun = (game for game in store.games() if next(store.entries(game), None) is not None)
    return list({(game.route, game.segment): game for game in begun}.values())


def _opened(config: Config) -> AbstractContextManager[Store]:
    return closing(open_store(config.store, read_only=True))


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        yield sys.stdout
        return
    with whole_file(path) as unfinished, open(unfinished, "w", encoding="utf-8", newline="", opener=_private) as file:
        yield file


def _private(path: str, flags: int) -> int:
    """Open a file that, where it is made, only its owner may read: a journal tells how much of what was asked."""
    return os.open(path, flags, 0o600)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
