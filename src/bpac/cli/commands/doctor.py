"""The command ``doctor``: check a gateway's configuration, machine and models without serving."""

import argparse
from pathlib import Path

from bpac.cli.output import add_json_option, print_report
from bpac.errors import MissingExtra

FINE, FAILED = 0, 1


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    doctor = commands.add_parser(
        "doctor", help="check a gateway's configuration, keys, store, address and models, and say what to do"
    )
    doctor.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    add_json_option(doctor)
    doctor.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    # Imported here, so that the help of this command can be read without the extra.
    try:
        from bpac.gateway.health.doctor import diagnose  # noqa: PLC0415
    except (MissingExtra, ModuleNotFoundError) as error:
        raise MissingExtra(error.name or "a package", "gateway") from error
    found = diagnose(options.config)
    fine = not any(one.finding.level == "error" for one in found)
    wrong = sum(one.finding.level != "ok" for one in found)
    lines = [*map(str, found), "all checks passed" if not wrong else f"{wrong} of {len(found)} checks need attention"]
    print_report(options, {"ok": fine, "findings": [one.to_json() for one in found]}, lines)
    return FINE if fine else FAILED
