"""All checks of a gateway without serving: its configuration, its machine and its models."""

import asyncio
import tomllib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.errors import BpacError
from bpac.gateway.auto_scores import ScoreChooser
from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.gateway.config.environment import missing_variables, without_missing
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.auto_score import with_scores
from bpac.gateway.health.findings import Checked
from bpac.gateway.health.machine_checks import check_address, check_call_prices, check_roles, check_store
from bpac.gateway.health.probe import probe
from bpac.gateway.health.records import QuietRecord
from bpac.gateway.health.roles import roles_of
from bpac.models.connections import Session, new_session
from bpac.stores import open_store


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding, and what it is about.

    Parameters
    ----------
    subject: what it is about: ``config``, ``gateway`` or ``model NAME``.
    finding: what was found.
    """

    subject: str
    finding: Checked

    def __str__(self) -> str:
        return f"{self.finding.level:<8} {self.subject}: {self.finding}"

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {"subject": self.subject, **self.finding.to_json()}


def diagnose(path: Path) -> list[Diagnosis]:
    """What is right and wrong with the gateway that a file configures.

    Parameters
    ----------
    path: the configuration file.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        remedy = "give the path of a configuration file; bpac init writes one"
        return [_config(Checked("config", f"{path} cannot be read ({error.strerror})", "error", remedy))]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return [_config(Checked("config", f"{path} is not TOML: {error}", "error", "correct this place"))]
    missing = dict(missing_variables(values))
    found = [
        _config(Checked("key", f"{where} is env:{name}, which is not set", "error", f"set {name} in the environment"))
        for where, name in missing.items()
    ]
    try:
        config = Config.read(without_missing(values))
    except BpacError as error:
        return [*found, _config(Checked("config", f"{path}: {error}", "error", "correct it: docs/gateway.md"))]
    routes, models = ", ".join([*config.routes_with_games, *config.single_routes]), ", ".join(config.models)
    found.append(_config(Checked("config", f"{path} is valid: routes {routes}; models {models}")))
    found += [Diagnosis("gateway", finding) for finding in _of_machine(config)]
    # Names of models may have dots, as gpt-4.1 has.
    unusable = {name for name in config.models if any(where.startswith(f"models.{name}.") for where in missing)}
    return found + asyncio.run(_of_models(config, unusable))


def _config(finding: Checked) -> Diagnosis:
    return Diagnosis("config", finding)


def _of_machine(config: Config) -> Iterator[Checked]:
    yield check_store(config.store)
    yield check_address(config)
    yield from check_roles(config)
    yield from check_call_prices(config)


async def _of_models(config: Config, unusable: set[str]) -> list[Diagnosis]:
    """The findings about all models, except those whose key is missing."""
    servers = {
        label: settings
        for name, model in config.models.items()
        if name not in unusable
        for label, settings in model.servers().items()
    }
    async with new_session() as session:
        chosen = [one async for one in _chosen_scores(config, session)]
        found = [Diagnosis(f"route {route}", finding) for route, _, finding in chosen]
        roles = roles_of(with_scores(config, {route: score for route, score, _ in chosen if score}))
        upstreams = [
            Upstream(settings, session, record=QuietRecord(settings.name), limits=config.limits)
            for settings in servers.values()
        ]
        probes = [probe(one, roles[one.settings.name], config.probe_timeout) for one in upstreams]
        results = await asyncio.gather(*probes)
    return found + [
        Diagnosis(f"model {label} ({roles[settings.name]})", finding)
        for (label, settings), findings in zip(servers.items(), results, strict=True)
        for finding in findings
    ]


async def _chosen_scores(config: Config, session: Session) -> AsyncIterator[tuple[str, str, Checked]]:
    """The score that each route with ``score = "auto"`` would take now, or why none could be chosen."""
    try:
        store = open_store(config.store, read_only=True)
    except (BpacError, OSError):
        store = None  # the gateway has not run yet; what else may be wrong with it is said elsewhere
    try:
        chooser = ScoreChooser(config, session, store)
        for name, route in config.routes.items():
            if not route.auto_score:
                continue
            try:
                score = await chooser.of(route)
            except BpacError:
                found = 'score = "auto" cannot be chosen: the model of the drafts gives no answer to choose it from'
                yield name, "", Checked("score", found, "error", "start the model, or name a score")
            else:
                yield name, score.name, Checked("score", f'score = "auto" takes {score.name} ({score.why})')
    finally:
        if store is not None:
            store.close()
