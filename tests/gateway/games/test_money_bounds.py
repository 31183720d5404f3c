"""Money saved: the bounds hold at all times over the whole bill, and no number ever lies outside its own bounds."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.gateway.config.models.prices import Price
from bpac.gateway.games.money.savings import ALPHA, Prices, Savings
from bpac.routing.journal.entries import Entry, Resolved
from bpac.wire.usage import Usage
from tests.gateway.games.test_savings_bounds import decided
from tests.promise.test_promise import most_explained

STREAMS, ROUNDS = 100, 250
EXPERT, DRAFT, JUDGE = Price(8.0, 2.0, 0.5), Price(4.0, 1.5), Price(3.0, 1.0, 0.25)
PRICES = Prices(DRAFT, EXPERT, JUDGE)


def expert_note(usage: Usage, propensity: float) -> dict[str, Any]:
    """The note of an outcome, with a server that counts cached tokens."""
    return {**usage.to_note("expert"), "expert_cached_tokens": usage.cached, "propensity": propensity}


def failed(seed: int) -> tuple[bool, bool, bool]:
    """Whether the bounds of a game ever failed: below, above, and below if only generated tokens are priced."""
    dice, savings, saved = random.Random(seed), Savings(), 0.0
    longest_answer = longest_prompt = 0
    below = above = output_below = False
    for step in range(1, ROUNDS + 1):
        propensity = 1.0 if step <= 20 else 0.3 if step < 120 else 0.1
        asked = dice.random() < propensity
        prompt = 50 + int(dice.lognormvariate(6.0, 1.0))
        usage = Usage(prompt, dice.choice((0, prompt // 2)), 1 + min(3000, int(dice.lognormvariate(4.0, 1.2))))
        longest_answer, longest_prompt = max(longest_answer, usage.completion), max(longest_prompt, prompt)
        draft, judge = Usage(prompt + 9, 0, 20), Usage(prompt, prompt // 3, 12)
        savings.add(decided(step, propensity, asked), draft.to_note("draft"))
        saved -= DRAFT.millionths(draft) / 1e6
        if asked:
            savings.add(Resolved(step, 0.0), {**expert_note(usage, propensity), **judge.to_note("judge")})
            saved -= JUDGE.millionths(judge) / 1e6
        else:
            saved += EXPERT.millionths(usage) / 1e6
        if asked or step == ROUNDS:
            report = savings.report(PRICES)
            assert report.money_saved_at_least is not None
            below = below or saved < report.money_saved_at_least - 1e-9
            short = longest_answer <= (report.longest_answer_assumed or 0)
            short = short and longest_prompt <= (report.longest_prompt_assumed or 0)
            if report.money_saved_at_most is not None and short:
                above = above or saved > report.money_saved_at_most + 1e-9
            output = savings.report(Prices(Price(4.0), Price(8.0), Price(3.0))).money_saved_at_least
            output_below = output_below or (output is not None and saved < output - 1e-9)
    return below, above, output_below


def test_the_bounds_on_the_bill_hold_at_all_times() -> None:
    """Each fails in at most a share α of games. Prices of generated tokens alone bound nothing: they are too high."""
    found = [failed(seed) for seed in range(STREAMS)]
    allowed = most_explained(STREAMS, ALPHA)
    assert sum(below for below, _, _ in found) <= allowed
    assert sum(above for _, above, _ in found) <= allowed
    assert sum(output for _, _, output in found) > allowed


def test_the_bounds_on_the_bill_get_tight() -> None:
    """After many rounds the lower bound is at least three quarters of what was saved."""
    dice, savings, saved = random.Random(3), Savings(), 0.0
    for step in range(1, 20_001):
        asked, usage = dice.random() < 0.1, Usage(300, dice.choice((0, 200)), 1 + int(dice.lognormvariate(5.0, 0.8)))
        savings.add(decided(step, 0.1, asked), Usage(300, 0, 20).to_note("draft"))
        saved -= DRAFT.millionths(Usage(300, 0, 20)) / 1e6
        if asked:
            savings.add(Resolved(step, 0.0), expert_note(usage, 0.1))
        else:
            saved += EXPERT.millionths(usage) / 1e6
    report = savings.report(PRICES)
    assert report.money_saved_at_least is not None
    assert report.money_saved_at_most is not None
    assert 0.75 * saved < report.money_saved_at_least < saved < report.money_saved_at_most < 1.5 * saved


amounts = st.sampled_from((0.0, 0.25, 3.0, 1e6))
prices = st.builds(
    lambda output, fresh, cached: Price(output, fresh, None if fresh is None or cached is None else min(fresh, cached)),
    amounts, st.none() | amounts, st.none() | amounts,
)  # fmt: skip
counts = st.integers(0, 40_000) | st.integers(0, 10**9)
usages = st.builds(
    lambda prompt, cached, completion, estimated: Usage(prompt, min(prompt, cached), completion, estimated),
    counts, counts, counts, st.integers(0, 5),
)  # fmt: skip
rounds = st.tuples(
    st.sampled_from((0.01, 0.3, 0.9, 1.0)),
    st.booleans(),
    usages,
    usages,
    usages,
    st.sampled_from(("graded", "cached unknown", "incomplete", "lost", "refused", "waiting", "old journal")),
)


def entries_of(step: int, one: Any) -> list[tuple[Entry, dict[str, Any]]]:
    """The entries of a round, with their notes."""
    propensity, coin, draft, expert, judge, fate = one
    asked = coin or propensity == 1.0
    noted = {"draft_tokens": draft.completion} if fate == "old journal" else draft.to_note("draft")
    found: list[tuple[Entry, dict[str, Any]]] = [(decided(step, propensity, asked), noted)]
    if not asked or fate == "waiting":
        return found
    if fate in ("lost", "refused"):
        found.append((Resolved(step, None, refused=fate == "refused"), {"propensity": propensity}))
        return found
    note = {**expert_note(expert, propensity), **judge.to_note("judge")}
    if fate == "cached unknown":
        del note["expert_cached_tokens"]
    if fate == "incomplete":
        note["expert_incomplete"] = True
    if fate == "old journal":
        note = {"expert_tokens": expert.completion, "propensity": propensity}
    found.append((Resolved(step, 0.0), note))
    return found


@settings(deadline=None, max_examples=300)
@given(st.lists(rounds, max_size=30), prices, prices, prices)
def test_no_number_lies_outside_its_own_bounds(game: list[Any], draft: Price, expert: Price, judge: Price) -> None:
    """Tokens, money and shares lie between their bounds after every entry, for any traffic, coins and prices."""
    savings = Savings()
    for step, one in enumerate(game, start=1):
        for entry, note in entries_of(step, one):
            savings.add(entry, note)
            report = savings.report(Prices(draft, expert, judge)).to_json()
            for name in ("tokens_saved", "share_saved", "money_saved", "money_share_saved"):
                estimate, least, most = (report[f"{name}{end}"] for end in ("", "_at_least", "_at_most"))
                if estimate is not None:
                    assert least <= estimate <= (estimate if most is None else most)
                    assert "share" not in name or estimate <= 1.0 >= most
            assert report["money_spent"] >= 0.0
            assert report["always_money"] >= 0.0


def test_journals_of_earlier_versions_have_no_prompts() -> None:
    """Their generated tokens count as before; what is not known about prompts is said, and saves nothing."""
    savings = Savings()
    for step in range(1, 101):
        savings.add(decided(step, 0.5, step % 2 == 0), {"draft_tokens": 10})
        if step % 2 == 0:
            savings.add(Resolved(step, 0.0), {"expert_tokens": 400, "judge_tokens": 3, "propensity": 0.5})
    report = savings.report(PRICES)
    assert (report.draft_tokens, report.expert_tokens, report.judge_tokens) == (1000, 20_000, 150)
    assert (report.tokens_saved, report.prompts_unknown) == (50 * 400 - 1150, 50)
    assert report.usage["draft"] == Usage(completion=1000).to_json()
    assert report.money_saved is not None
    assert report.money_saved < 50 * EXPERT.millionths(Usage(0, 0, 400)) / 1e6
