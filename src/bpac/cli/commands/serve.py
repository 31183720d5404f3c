"""The command ``serve``: run the gateway."""

import argparse
from pathlib import Path

from bpac.errors import MissingExtra, SettingsError
from bpac.gateway.config.file import Config, load_config
from bpac.gateway.telemetry.logs import log_as_json
from bpac.stores.redis.server.address import is_redis

FINE, FAILED = 0, 1


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    serve = commands.add_parser("serve", help="run the gateway, an OpenAI-compatible server in front of two models")
    serve.add_argument("config", metavar="CONFIG", type=Path, help="TOML file that configures the gateway")
    serve.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="lowest level of the messages that are logged (default: info)",
    )
    serve.add_argument(
        "--workers",
        metavar="N",
        type=int,
        help="answer requests in N processes, and keep the journals in one more (default: one process for everything)",
    )
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> int:
    # Imported here, so that the help of this command can be read without the extra.
    try:
        from bpac.gateway.server import serve  # noqa: PLC0415
        from bpac.gateway.workers.supervisor import supervise  # noqa: PLC0415
    except (MissingExtra, ModuleNotFoundError) as error:
        # Whichever package is missed first, this extra has them all.
        raise MissingExtra(error.name or "a package", "gateway") from error

    def load() -> Config:
        return load_config(options.config)

    def refuse_redis(store: str) -> None:
        if is_redis(store):
            raise SettingsError(
                "--workers is for games in SQLite. Games in Redis are shared by gateways: start several of them, each "
                "with an address of its own (gateway.listen), behind a load balancer"
            )

    if options.workers is not None:
        refuse_redis(load().store)  # what is wrong is said in one line, before anything is logged
        log_as_json(options.log_level)
        return FINE if supervise(options.config, load, options.workers, options.log_level) else FAILED
    config = load()
    log_as_json(options.log_level)
    return FINE if serve(config, load) else FAILED
