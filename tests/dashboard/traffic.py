"""Traffic for a gateway, its metrics and its journal, to compare with its dashboard."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from bpac.routing.journal.entry_lines import read_journal
from bpac.routing.router import Router
from bpac.stores.export import journal_lines
from tests.gateway.law import Question
from tests.gateway.raw import Got, post
from tests.gateway.running import RunningGateway

AT_ONCE = 4


def ask(gateway: RunningGateway, numbers: Iterable[int], tenants: Iterable[str] = repeat("")) -> None:
    """Ask questions by the official client, and wait until all of them are graded.

    Parameters
    ----------
    gateway: the gateway.
    numbers: numbers of the questions.
    tenants: tenant of each question (default: none).
    """

    def one(number: int, tenant: str) -> None:
        client.chat.completions.create(**Question(number).body, metadata={"tenant": tenant})

    with gateway.client() as client, ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(one, numbers, tenants))
    gateway.idle()


def get(gateway: RunningGateway, path: str, **headers: str) -> Got:
    """Get an endpoint of the dashboard."""
    return post(gateway.url, b"", f"/dashboard{path}", headers=headers, method="GET")


def metrics(gateway: RunningGateway) -> dict[str, float]:
    """The samples of ``/metrics``, by name and labels."""
    text = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(
                value for name, value in sorted(sample.labels.items()) if name not in ("route", "segment")
            )
            found[f"{sample.name.removeprefix('bpac_')}{labels and f'[{labels}]'}"] = sample.value
    return found


def folded(gateway: RunningGateway) -> tuple[Router, list[Any]]:
    """The router rebuilt from the exported journal, and the entries of the journal."""
    (game,) = gateway.service.store.games()
    entries = list(read_journal(f"{line}\n" for line in journal_lines(gateway.service.store, game)))
    return Router.rebuild(entries), entries
