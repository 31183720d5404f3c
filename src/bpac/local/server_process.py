"""The process of a ``LocalServer``, which runs llama.cpp's server. Only this module imports xllamacpp."""

import json
import os
import sys
from typing import Any

READY = "listening "


def serve(settings: dict[str, Any]) -> None:
    """Serve a model until standard input is closed, which also happens if the parent process dies.

    Parameters
    ----------
    settings: the fields of a ``LocalServer``, as JSON values.
    """
    import xllamacpp  # noqa: PLC0415  (an optional dependency; the parent needs only READY)

    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["name"]}
    params.port = settings["port"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]  # llama.cpp divides the context among the slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = 0  # otherwise cached prompts fill gigabytes of memory
    params.sampling.temp = settings["temperature"]
    params.fit_params = False  # otherwise llama.cpp may reduce the context
    if settings.get("chat_template"):
        params.chat_template = settings["chat_template"]
    params.ui = False
    params.verbosity = 1  # errors only
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{READY}{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # there is nothing to save, and llama.cpp's own end may wait for its threads for ever


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
