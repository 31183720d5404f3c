"""The command ``init``: write a configuration file for a gateway, from options or from a few questions."""

import argparse
import sys
from pathlib import Path

from bpac.errors import InputError
from bpac.gateway.config.new_file import LOSSES, NewGateway, NewModel
from bpac.gateway.config.routes.auto_score import AUTO
from bpac.output_files import whole_file
from bpac.scores import SCORES

FINE = 0
# The options that have no default, with the question that is asked for each.
QUESTIONS = {
    "draft_url": "Address of the server of the fast model, such as http://127.0.0.1:8001/v1",
    "draft_model": "Name of the fast model on that server",
    "expert_url": "Address of the server of the slow, better model",
    "expert_model": "Name of the slow model on that server",
}
# The options that have one, with the question.
MORE_QUESTIONS = {
    "draft_key": "Environment variable with the key of the fast model's server, as env:NAME; empty if it needs none",
    "expert_key": "The same for the slow model's server",
    "epsilon": "Largest average loss per request that serving drafts may cause (0 to 1)",
    "answers": f"What answers are like: {', '.join(LOSSES)}",
    "score": f"How the uncertainty of a draft is computed: {', '.join(SCORES)}",
}


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    init = commands.add_parser("init", help="write a configuration file for a gateway, from options or a few questions")
    defaults = NewGateway(NewModel("", ""), NewModel("", ""))
    for name, who in (("draft", "fast model, which drafts every answer"), ("expert", "slow model, the reference")):
        init.add_argument(f"--{name}-url", metavar="URL", help=f"address of the server of the {who}, /v1 included")
        init.add_argument(f"--{name}-model", metavar="NAME", help=f"name of the {who}, on its server")
        init.add_argument(
            f"--{name}-key", metavar="env:NAME", help="environment variable that holds the key of its server"
        )
        api = "API of its server: chat completions, OpenAI's responses or Anthropic's messages (default: %(default)s)"
        init.add_argument(f"--{name}-api", choices=("chat", "responses", "messages"), default="chat", help=api)
    init.add_argument(
        "--epsilon", type=float, help=f"largest average loss per request (default: {defaults.epsilon}); between 0 and 1"
    )
    init.add_argument(
        "--alpha",
        type=float,
        default=defaults.alpha,
        help="probability with which the promise may fail (default: %(default)s)",
    )
    init.add_argument("--route", default=defaults.route, help="name that clients send as model (default: %(default)s)")
    init.add_argument(
        "--answers",
        choices=tuple(LOSSES),
        help="what answers are like, which decides how drafts are graded: short (numbers, choices, labels), prose "
        f"(the expert is the judge), tools (tool calls), external (your program grades) (default: {defaults.answers})",
    )
    init.add_argument(
        "--score", choices=(AUTO, *SCORES), help=f"how a draft's uncertainty is computed (default: {defaults.score})"
    )
    init.add_argument("--listen", default=defaults.listen, help="address to listen on (default: %(default)s)")
    init.add_argument("--store", default=defaults.store, help="where journals are kept (default: %(default)s)")
    init.add_argument(
        "--out", type=Path, default=Path("gateway.toml"), help="file to write (default: %(default)s)", metavar="FILE"
    )
    init.add_argument("--force", action="store_true", help="overwrite the file if it exists")
    init.set_defaults(run=_init)


def _init(options: argparse.Namespace) -> int:
    if options.out.exists() and not options.force:
        raise InputError(f"{options.out} exists: give another file with --out, or overwrite it with --force")
    missing = [name for name in QUESTIONS if not getattr(options, name)]
    if missing:
        if not sys.stdin.isatty():
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
            raise InputError(f"{flags} {'is' if len(missing) == 1 else 'are'} missing")
        _ask(options)
    gateway = NewGateway(
        NewModel(options.draft_url, options.draft_model, options.draft_key or "", options.draft_api),
        NewModel(options.expert_url, options.expert_model, options.expert_key or "", options.expert_api),
        **{name: value for name in ("epsilon", "answers", "score") if (value := getattr(options, name)) is not None},
        alpha=options.alpha,
        route=options.route,
        listen=options.listen,
        store=options.store,
    )
    text = gateway.to_toml()
    with whole_file(options.out) as path:
        path.write_text(text, encoding="utf-8")
    keys = [key.removeprefix("env:") for key in {gateway.draft.key, gateway.expert.key} if key]
    needed = f"; set {' and '.join(sorted(keys))} in the environment" if keys else ""
    print(f"wrote {options.out}{needed}. Check it:  bpac doctor {options.out}  Run it:  bpac serve {options.out}")
    return FINE


def _ask(options: argparse.Namespace) -> None:
    """Ask for what was not given; an empty answer means the default."""
    for name, question in {**QUESTIONS, **MORE_QUESTIONS}.items():
        if not getattr(options, name):
            setattr(options, name, _answer(name, question))


def _answer(name: str, question: str) -> str | float | None:
    """The answer to a question; none if the default holds. A wrong answer is asked for again."""
    while True:
        # The prompt is no result, so it goes to standard error.
        print(f"{question}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise InputError("the questions were not answered")
        text = line.strip()
        if not text and name in MORE_QUESTIONS:
            return None
        if name == "epsilon":
            try:
                if 0.0 < float(text) < 1.0:
                    return float(text)
            except ValueError:
                pass
            continue
        choices = {"answers": LOSSES, "score": SCORES}.get(name)
        if text and (choices is None or text in choices):
            return text
