"""The command ``validate``: a Monte-Carlo check of the promise on simulated streams."""

import argparse
import json
from dataclasses import replace
from typing import NamedTuple

from bpac.cli.options.cascade_options import PRICES, cascade_factory
from bpac.cli.options.learning_option import add_learn_option, chosen_learning
from bpac.cli.options.policy_options import (
    WITHOUT_PROMISE,
    add_policy_options,
    chosen_drafting,
    chosen_policy,
    router_factory,
)
from bpac.cli.output import counted
from bpac.errors import InputError
from bpac.replay.cascade.reading import is_cascade, open_cascade
from bpac.replay.cascade.simulation import CascadeStreams
from bpac.replay.metrics import mean_and_std
from bpac.replay.router_factory import suited_to
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.faults import FAULTS, Faults
from bpac.replay.simulation.laws import LAWS, Law, LevelLaw, RecordedLaw, largest_safe, named_law
from bpac.replay.simulation.recorded import RecordedStreams
from bpac.replay.simulation.streams import Streams
from bpac.replay.tables.builtin import PREFIX, open_table
from bpac.replay.validation import MakeRouter, Promise, Validation, streams_needed, upper_95
from bpac.routing.dithering import WIDTH
from bpac.routing.policies import ORACLE, Policy, Portfolio

PROMISES: dict[Promise, str] = {
    "threshold": "a threshold with a true risk above ε was in force at some step",
    "served": "the average loss of the served answers exceeded ε at some step",
    "certificate": "the loss of the served answers left the bounds of its certificate at some step",
}


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    validate = commands.add_parser("validate", help="check the promise of a routing policy on simulated streams")
    add_policy_options(validate, epsilon=0.1)
    validate.add_argument("--streams", type=int, default=2000, help="number of streams (default: 2000)")
    validate.add_argument("--steps", type=int, default=1000, help="number of queries in each stream (default: 1000)")
    validate.add_argument(
        "--law",
        choices=tuple(LAWS),
        default="rising",
        help="distribution of uncertainty and loss. rising: a loss is more probable if the uncertainty is higher; "
        "flat: equally probable everywhere; graded: like rising, with losses of 0.6; levels: the uncertainty has only "
        "three values; edge: one value, whose risk is just above 0.1 (default: rising)",
    )
    validate.add_argument(
        "--table",
        metavar="TABLE",
        help="draw the queries from the rows of this table instead, with replacement, so that their average loss is "
        f"the true risk: a file or {PREFIX}NAME, of two models or of a cascade, as for bpac replay",
    )
    add_learn_option(validate, "if the default policy is used and --table has such columns")
    validate.add_argument(
        "--prices",
        metavar="P1,…,PM",
        help=f"for a table of a cascade, the {PRICES} (default: the mean tokens of each model relative to the last)",
    )
    validate.add_argument(
        "--faults",
        default="",
        metavar="LIST",
        help=f"what goes wrong, separated by commas: {FAULTS} (default: nothing)",
    )
    validate.add_argument(
        "--crash-every",
        type=int,
        default=0,
        metavar="N",
        help="crash after every N decisions, the same as --faults crash:N (default: 0, never)",
    )
    validate.add_argument(
        "--promise",
        choices=tuple(PROMISES),
        help="promise whose violations are counted: the risk of every threshold, the average loss of the served "
        "answers, or the bounds of the certificate (default: served for the policy budget, else threshold); the "
        f"policies {', '.join(WITHOUT_PROMISE)} make no promise",
    )
    validate.set_defaults(run=_validate)


class Validated(NamedTuple):
    """What is validated.

    Parameters
    ----------
    name: name of the policy.
    policy: the policy.
    make_router: makes its routers.
    law: distribution of the queries.
    largest_safe: the largest threshold of the first score that is safe; none for a cascade, where each stopping rule
        has its own.
    """

    name: str
    policy: Policy
    make_router: MakeRouter
    law: Law | Streams
    largest_safe: float | None = None


def _subject(options: argparse.Namespace) -> Validated:
    """What the options name."""
    if options.table and is_cascade(options.table):
        if options.learn:
            raise InputError("--learn is for tables of two models, and this one is of a cascade: leave it out")
        answers = open_cascade(options.table)
        factory = cascade_factory(options, answers)
        return Validated("cascade", factory.policy, factory, CascadeStreams(answers))
    if options.prices:
        raise InputError("--prices is for tables of a cascade: give one with --table, or leave it out")
    table = open_table(options.table) if options.table else None
    law = named_law(options.law) if table is None else RecordedLaw(table.uncertainty, table.loss)
    policy = chosen_policy(options)
    if options.policy == "oracle":
        policy = replace(ORACLE, threshold=largest_safe(law, options.epsilon / (1.0 - ORACLE.explores)))
    if options.dither == "auto":
        if table is not None:
            policy = suited_to(policy, table)
        elif isinstance(law, LevelLaw) and policy == Portfolio():
            policy = replace(Portfolio(), dither=WIDTH)
    policy = chosen_learning(policy, table, options.learn)
    make_router = router_factory(options, policy)
    safe = largest_safe(law, options.epsilon / make_router.kept_share)
    if table is not None and policy.learned is not None:
        return Validated(options.policy, policy, make_router, RecordedStreams(table), safe)
    return Validated(options.policy, policy, make_router, law, safe)


def _validate(options: argparse.Namespace) -> int:
    subject = _subject(options)
    policy = subject.policy
    promise: Promise = options.promise or ("served" if options.policy == "budget" else "threshold")
    faults = Faults.parse(options.faults)
    if options.crash_every:
        faults = replace(faults, crash_every=options.crash_every)
    validation = Validation(
        subject.make_router,
        subject.law,
        options.steps,
        Delay.parse(options.delay),
        chosen_drafting(options),
        faults,
        certificate=promise == "certificate",
    )
    results = validation.run(options.streams, options.seed)
    violations = sum(promise in result.broken for result in results)
    report = {
        "policy": subject.name,
        "memory": getattr(policy, "memory", None),
        "dither": getattr(policy, "dither", 0.0),
        "learn": list(policy.learned.features) if policy.learned is not None else None,
        "promise": promise,
        "law": None if options.table else options.law,
        "table": options.table,
        "delay": options.delay,
        "in_flight": options.in_flight,
        "draft_time": options.draft_time,
        "tickets": not options.no_tickets,
        "faults": options.faults,
        "crash_every": faults.crash_every,
        "epsilon": options.epsilon,
        "alpha": options.alpha,
        "seed": options.seed,
        "streams": options.streams,
        "steps": options.steps,
        "violations": violations,
        "rate": violations / options.streams,
        "upper_95": upper_95(violations, options.streams),
        "rounds": mean_and_std([result.rounds for result in results]),
        "expert_call_rate": mean_and_std([result.expert_call_rate for result in results]),
        "threshold": mean_and_std([result.threshold for result in results]),
        "largest_safe_threshold": subject.largest_safe,
    }
    if options.json:
        print(json.dumps(report))
        return 0
    promised = f"promised: at most {options.alpha:.2%}"
    learned = f" with a score learned from {', '.join(report['learn'])}" if report["learn"] else ""
    print(
        f"{subject.name}{learned}: {PROMISES[promise]} in {violations:,} of {counted(options.streams, 'stream')} "
        f"of {counted(options.steps, 'query', 'queries')}\n"
        f"  rate {report['rate']:.2%}, at most {report['upper_95']:.2%} with 95% confidence; "
        f"{'this policy makes no promise' if options.policy in WITHOUT_PROMISE else promised}"
    )
    if options.policy not in WITHOUT_PROMISE and report["rate"] <= options.alpha < report["upper_95"]:
        needed = streams_needed(violations, options.streams, options.alpha)
        advice = "" if needed is None else f": try --streams {needed}"
        print(f"  the rate is within the promise, but more streams are needed to show it{advice}")
    return 0
