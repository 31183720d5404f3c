"""Opening the models of a configuration: each with the servers that requests are sent to, and their probes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from bpac.gateway.chat.upstreams.deployments import Deployments
from bpac.gateway.chat.upstreams.model import Model
from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.gateway.config.file import Config
from bpac.gateway.config.limits import Limits
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.health.monitor import WatchedServer
from bpac.gateway.health.records import DeploymentRecord, QuietRecord
from bpac.gateway.health.roles import roles_of
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecord
from bpac.gateway.telemetry.metrics.counters import Metrics

# Makes an ``Upstream`` for a server, which records its answers and failures.
NewUpstream = Callable[[ModelSettings, UpstreamRecord], Upstream]
# Makes the record of a deployment: of its model, the metrics, and its name.
NewRecord = Callable[[str, Metrics, str], UpstreamRecord]


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that requests can be sent to.

    Parameters
    ----------
    settings: its settings.
    limits: the limits on its answers.
    model: answers requests.
    servers: what the health monitor watches: its server, or its deployments.
    """

    settings: ModelSettings
    limits: Limits
    model: Model
    servers: tuple[WatchedServer, ...]


def open_models(
    config: Config,
    new: NewUpstream,
    records: Mapping[str, UpstreamRecord],
    metrics: Metrics,
    known: Mapping[str, OpenModel] | None = None,
    *,
    new_record: NewRecord = DeploymentRecord,
) -> dict[str, OpenModel]:
    """All models of a configuration, by name.

    Parameters
    ----------
    config: the configuration.
    new: makes the ``Upstream`` of a server.
    records: where the answers and failures of each model are recorded.
    metrics: counts the answers and failures of deployments.
    known: models that are open; those whose settings are the same stay as they are, with all that is known about them
        (default: none).
    new_record: makes the record of a deployment (default: one that only this process reads).
    """
    roles = roles_of(config)
    opened = {}
    for name, settings in config.models.items():
        before = (known or {}).get(name)
        if before is None or (before.settings, before.limits) != (settings, config.limits):
            of_deployment = partial(new_record, name, metrics)
            before = _opened(settings, config.limits, new, records[name], of_deployment, metrics=metrics)
        for server in before.servers:
            server.role = roles[name]
        opened[name] = before
    return opened


def _opened(
    settings: ModelSettings,
    limits: Limits,
    new: NewUpstream,
    record: UpstreamRecord,
    new_record: Callable[[str], UpstreamRecord],
    *,
    metrics: Metrics,
) -> OpenModel:
    if not settings.deployments:
        upstream = new(settings, record)
        return OpenModel(settings, limits, upstream, (_watched(settings.name, upstream, record, new),))
    upstreams, watched = {}, []
    for name, own in settings.deployments:
        own_record = new_record(name)
        upstreams[name] = new(own, own_record)
        watched.append(_watched(f"{settings.name}/{name}", upstreams[name], own_record, new))
    return OpenModel(settings, limits, Deployments(settings, upstreams, record, metrics), tuple(watched))


def _watched(label: str, upstream: Upstream, record: UpstreamRecord, new: NewUpstream) -> WatchedServer:
    settings = upstream.settings
    prober = new(settings, QuietRecord(settings.name, health=record.health))
    return WatchedServer(settings.name, label, prober, upstream.breaker)
