"""The process that a ``LocalServer`` runs: llama.cpp's own server. The only module that imports xllamacpp."""

import json
import sys
from typing import Any

READY = "listening "


def serve(settings: dict[str, Any]) -> None:
    """Serve a model until standard input ends, which it also does when the parent dies.

    Parameters
    ----------
    settings: the fields of a ``LocalServer``, as JSON values.
    """
    import xllamacpp  # noqa: PLC0415  (optional: the parent reads READY without it)

    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["name"]}
    params.port = settings["port"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]  # llama.cpp divides it among the slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = 0  # else prompts are kept for ever, and memory grows by gigabytes
    params.sampling.temp = settings["temperature"]
    params.fit_params = False  # else the context asked for may be made smaller
    params.ui = False
    params.verbosity = 1  # errors only
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{READY}{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
