"""Two LangChain chat models as one, with a promise: a gateway decides which drafts are kept.

The gateway has a route that decides only, and sees neither prompts nor answers::

    [routes.homework]
    decide_only = true
    epsilon = 0.05

Start it with ``bpac serve gateway.toml``, then:

    GATEWAY=http://127.0.0.1:8800 OPENAI_API_KEY=… python examples/langchain_pair.py "What is 6 * 7?" "Who wrote Emma?"

``MODELS`` is the base URL of another OpenAI-compatible server; ``DRAFT`` and ``EXPERT`` name the models.
"""

import asyncio
import os
import sys

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI

import bpac
from bpac.remote.decision import RemoteDecision

score, loss = bpac.MeanTokenProbability(), bpac.AnswerLoss()


def answer_of(message: BaseMessage) -> bpac.Answer:
    """A message of LangChain as score and loss read it."""
    logprobs = (message.response_metadata.get("logprobs") or {}).get("content") or ()
    tokens = tuple(bpac.Token(one["token"], one["logprob"]) for one in logprobs)
    return bpac.Answer(message.text, tokens=tokens or None)


def promised(draft: BaseChatModel, expert: BaseChatModel, router: bpac.RemoteRouter) -> Runnable[str, BaseMessage]:
    """A runnable that answers with the draft where the gateway keeps it, and with the expert otherwise.

    Parameters
    ----------
    draft: the cheap model.
    expert: the model whose answers drafts are compared with.
    router: decides.
    """
    scored = draft.bind(logprobs=True)

    async def answer(question: str) -> BaseMessage:
        # The round begins before the draft is asked for, so that any number of questions may be answered at once.
        async with router.round() as one:
            kept = await scored.ainvoke(question)
            decision = await one.decide(score(answer_of(kept)))
        if not decision.call_expert:
            return kept
        try:
            better = await expert.ainvoke(question)
        except Exception:
            await router.forfeit(decision)  # the loss will never be known
            raise
        await graded(decision, kept, better)  # a server may do this after it has answered
        return kept if decision.serve_draft else better

    async def graded(decision: RemoteDecision, kept: BaseMessage, better: BaseMessage) -> None:
        found = loss(answer_of(kept), answer_of(better))
        if found is None:
            await router.forfeit(decision)  # the two cannot be compared: counts as a loss of 1
        else:
            await router.observe(decision, found)

    return RunnableLambda(answer)


async def main(questions: list[str]) -> None:
    """Answer questions, all at once."""
    base_url = os.environ.get("MODELS")
    draft = ChatOpenAI(model=os.environ.get("DRAFT", "gpt-4o-mini"), base_url=base_url)
    expert = ChatOpenAI(model=os.environ.get("EXPERT", "gpt-4o"), base_url=base_url)
    gateway, key = os.environ.get("GATEWAY", "http://127.0.0.1:8800"), os.environ.get("BPAC_KEY")
    async with bpac.RemoteRouter(gateway, os.environ.get("ROUTE", "homework"), api_key=key) as router:
        for message in await promised(draft, expert, router).abatch(questions):
            model = message.response_metadata.get("model_name", "?")
            print(f"{model}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or ["What is 6 * 7?"]))
