"""The options of commands that send requests to model servers: address, model, key, request fields, retries."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from bpac.benchmarks.sampling import SAMPLINGS
from bpac.collecting.requests import ModelServer
from bpac.errors import InputError

# Scores are computed from log-probabilities; entropy also needs the most likely tokens.
DRAFT_BODY = {"logprobs": True, "top_logprobs": 10}


def add_model_options(
    parser: argparse.ArgumentParser,
    role: str,
    required: bool,
    body_note: str = "",
    needed: str = "needed for open questions",
) -> None:
    """Add the options for the server of a model.

    Parameters
    ----------
    parser: the parser of the command.
    role: ``draft``, ``expert`` or ``judge``; the options begin with it.
    required: whether the address and the name of the model must be given.
    body_note: what else to say about the request fields.
    needed: what an address and a name that are not required are for.
    """
    note = "" if required else f"; {needed}"
    url = f"base URL of the {role}'s server, including /v1{note}"
    model = f"name of the {role} model on its server{note}"
    body = f"JSON object with further fields for requests to the {role}{body_note} (default: none)"
    key = f"API key of the {role}'s server, or env:NAME to read it from an environment variable (default: none)"
    parser.add_argument(f"--{role}-url", required=required, metavar="URL", help=url)
    parser.add_argument(f"--{role}-model", required=required, metavar="MODEL", help=model)
    parser.add_argument(f"--{role}-body", metavar="JSON", help=body)
    parser.add_argument(f"--{role}-key", metavar="KEY", help=key)
    api = f"API of the {role}'s server: chat completions, OpenAI's responses or Anthropic's messages (default: chat)"
    parser.add_argument(f"--{role}-api", choices=("chat", "responses", "messages"), default="chat", help=api)


def add_request_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for concurrency, retries and time limits."""
    concurrency = "largest number of concurrent requests (default: 8)"
    retries = "number of times a failed request is repeated, with increasing waits (default: 4)"
    timeout = "time limit of one request in seconds (default: 600)"
    parser.add_argument("--concurrency", type=int, default=8, metavar="N", help=concurrency)
    parser.add_argument("--retries", type=int, default=4, metavar="N", help=retries)
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help=timeout)


def request_body(options: argparse.Namespace, role: str) -> dict[str, Any]:
    """The request fields for a model: those of the command line override the paper's sampling for its models."""
    model, text = getattr(options, f"{role}_model"), getattr(options, f"{role}_body")
    sampling = asdict(SAMPLINGS[model]) if model in SAMPLINGS else {}
    sampling.pop("model", None)
    try:
        given = json.loads(text or "{}")
    except ValueError as error:
        raise InputError(f"--{role}-body is not JSON ({error}): {text}") from error
    if not isinstance(given, dict):
        raise InputError(f"--{role}-body must be a JSON object, got {text}")
    # The Messages API has no log-probabilities, and refuses to be asked for them.
    scored = role == "draft" and options.draft_api != "messages"
    return {**(DRAFT_BODY if scored else {}), **sampling, **given}


def model_server(options: argparse.Namespace, role: str) -> ModelServer:
    """The server of a model; wrong options are an error before any request is sent."""
    url, model, key, api = (getattr(options, f"{role}_{name}") for name in ("url", "model", "key", "api"))
    server = ModelServer(url, model, key, options.timeout, options.retries, api)
    try:
        server.client()  # this does not connect, but it checks its arguments
    except InputError as error:
        # The client's argument names differ from the names of the options.
        typed = {"base_url": f"--{role}-url", "api_key": f"--{role}-key"}
        option = next((option for name, option in typed.items() if str(error).startswith(name)), "")
        raise InputError(f"{option}: {error}" if option else str(error)) from error
    return server
