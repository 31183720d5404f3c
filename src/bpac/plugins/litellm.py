"""A plug-in for LiteLLM's proxy: a model that answers with a draft or with the expert, as a gateway decides.

It is a custom provider of LiteLLM. Both models are model groups of the proxy, so their keys, fallbacks, budgets and
logs are LiteLLM's own; the gateway has a route with ``decide_only = true``, and sees no prompt and no answer::

    model_list:
      - model_name: small
        litellm_params: {model: openai/gpt-4o-mini, api_key: os.environ/OPENAI_API_KEY}
      - model_name: large
        litellm_params: {model: openai/o3, api_key: os.environ/OPENAI_API_KEY}
      - model_name: homework
        litellm_params: {model: bpac/homework, api_base: "http://127.0.0.1:8800", api_key: os.environ/BPAC_KEY}
        model_info: {bpac: {draft: small, expert: large}}
    litellm_settings:
      custom_provider_map:
        - {provider: bpac, custom_handler: bpac.plugins.litellm.handler}

1. A request takes its ticket when it arrives. Its draft is asked for and scored, and the gateway decides.
2. If the gateway is gone, the expert answers: nothing is kept that the gateway did not decide.
3. From the decision on the round counts. The expert is asked in a task of its own, which grades the draft and reports
   the loss, even if the caller leaves.
4. A refusal is what the expert's server said about the request. If LiteLLM itself cannot send it, because the model
   group is unknown or not allowed, that is a mistake in the proxy's configuration: an error, and the round is lost.
5. LiteLLM repeats calls that failed. A call whose expert failed, or was cut off by a time limit, is repeated with the
   expert alone: one query, one coin.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine
from typing import Any, NamedTuple

from bpac.answer import Answer
from bpac.arguments import fraction
from bpac.errors import GatewayError, GatewayRefused, MissingExtra, SettingsError
from bpac.models.refusals import is_refused
from bpac.plugins.litellm_responses import Chunk, chunks_of, chunks_of_part, described, usage_of, without_logprobs
from bpac.plugins.pair_settings import PairSettings, answer_of
from bpac.remote.decision import NO_GATEWAY, RemoteDecision, undecided
from bpac.remote.router import RemoteRouter

try:
    import litellm
    from litellm import CustomLLM
    from litellm.llms.custom_llm import CustomLLMError
except ImportError as error:
    raise MissingExtra("litellm", "litellm") from error

log = logging.getLogger("bpac.litellm")

# Why a request is not decided.
SEVERAL_CHOICES, REPEATED, REFUSED_BY_GATEWAY = "n", "repeated", "gateway-refused"
# Seconds that an attempt to reach the gateway may take: callers wait for it.
PATIENCE = 2.0
# Calls whose expert failed or was cut off that are remembered, because LiteLLM may repeat them.
MOST_FAILED = 10_000
# Fields of a call that are about the call and not about the answer.
NOT_FORWARDED = ("stream", "stream_options", "max_retries")


class ProxiedCall(NamedTuple):
    """One request.

    Parameters
    ----------
    pair: the two models.
    router: asks the gateway.
    id: of the call; the same when LiteLLM repeats it.
    messages: of the chat.
    options: the other fields of the request.
    metadata: whose key pays for it.
    """

    pair: PairSettings
    router: RemoteRouter
    id: str
    messages: list[Any]
    options: dict[str, Any]
    metadata: dict[str, Any]

    async def ask(self, model: str, **more: Any) -> Any:
        """The answer of a model group of the proxy."""
        from litellm.proxy.proxy_server import llm_router  # noqa: PLC0415  # it exists when the proxy has started

        if llm_router is None:
            raise CustomLLMError(500, "bpac.plugins.litellm is for LiteLLM's proxy, which is not running here")
        fields = {**self.options, **more, "metadata": dict(self.metadata)}
        try:
            return await llm_router.acompletion(model=model, messages=self.messages, **fields)
        except Exception as error:
            # LiteLLM names the provider whose server said no; where there is none, no server was asked.
            if is_refused(_status_of(error)) and not getattr(error, "llm_provider", ""):
                message = (
                    f"LiteLLM cannot ask the model group {model!r} that model_info.bpac names ({error}): check that it "
                    "is in model_list and that this key may use it"
                )
                log.error(message)
                raise CustomLLMError(500, message) from error
            raise


class DecidedDraft(NamedTuple):
    """A draft, and what was decided about it.

    Parameters
    ----------
    decision: the decision.
    response: the draft, for the caller; none if there is none.
    answer: what is read of it.
    """

    decision: RemoteDecision
    response: Any = None
    answer: Answer | None = None


class BpacProvider(CustomLLM):  # type: ignore[misc]  # LiteLLM is in another environment than the type checker
    """The custom provider ``bpac``; a subclass may compute another score or another loss."""

    def __init__(self) -> None:
        super().__init__()
        self._routers: dict[tuple[str, str, str], RemoteRouter] = {}
        self._failed: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()

    def uncertainty(self, pair: PairSettings, draft: Answer) -> float:
        """The uncertainty of a draft in [0, 1]; an ``AnswerError`` if it has none."""
        return pair.uncertainty(draft)

    def loss(self, pair: PairSettings, draft: Answer, expert: Answer) -> float | None:
        """The loss of a draft in [0, 1]; none if it cannot be known, which counts as 1."""
        return pair.loss_of(draft, expert)

    async def acompletion(self, *_: Any, **given: Any) -> Any:
        """A whole answer."""
        call = self._call(given)
        drafted = await self._drafted(call)
        if drafted.decision.serve_draft:
            if drafted.decision.call_expert:
                self._spawn(self._expert(call, drafted))
            return described(drafted.response, drafted.decision, "draft")
        try:
            return await asyncio.shield(self._spawn(self._expert(call, drafted)))
        except asyncio.CancelledError:  # perhaps a time limit of LiteLLM, after which it repeats the call
            self._remember(call)
            raise

    async def astreaming(self, *_: Any, **given: Any) -> AsyncIterator[Chunk]:
        """A stream: the draft at once when it is kept, or the expert's answer as it comes."""
        call = self._call(given)
        drafted = await self._drafted(call)
        if drafted.decision.serve_draft:
            if drafted.decision.call_expert:
                self._spawn(self._expert(call, drafted))
            for chunk in chunks_of(drafted.response):
                yield chunk
            return
        queue: asyncio.Queue[Chunk | Exception | None] = asyncio.Queue()
        self._spawn(self._expert_stream(call, drafted, queue))
        try:
            while (part := await queue.get()) is not None:
                if isinstance(part, Exception):
                    raise part
                yield part
        except asyncio.CancelledError:
            self._remember(call)
            raise

    def _call(self, given: dict[str, Any]) -> ProxiedCall:
        parameters, route, base = given.get("litellm_params") or {}, given["model"], given.get("api_base")
        where = f"model_info.bpac of the model bpac/{route}"
        try:
            if not base:
                raise SettingsError(f"api_base of the model bpac/{route} is missing: give the address of the gateway")
            pair = PairSettings.read((parameters.get("model_info") or {}).get("bpac"), where)
        except SettingsError as error:
            raise CustomLLMError(500, str(error)) from error
        key = given.get("api_key") or ""
        router = self._routers.get((base, key, route))
        if router is None:
            router = RemoteRouter(base, route, api_key=key, timeout=PATIENCE, retries=1)
            self._routers[base, key, route] = router
        metadata = parameters.get("metadata") or {}
        return ProxiedCall(
            pair,
            router,
            str(parameters.get("litellm_call_id") or ""),
            given["messages"],
            {name: value for name, value in given["optional_params"].items() if name not in NOT_FORWARDED},
            {name: value for name, value in metadata.items() if name.startswith("user_api_key")},
        )

    async def _drafted(self, call: ProxiedCall) -> DecidedDraft:
        """Rules 1 and 2."""
        if call.id in self._failed:
            return DecidedDraft(undecided(REPEATED))
        if (call.options.get("n") or 1) > 1:
            return DecidedDraft(undecided(SEVERAL_CHOICES))
        try:
            async with call.router.round() as round_:
                if round_.ticket is None:
                    return DecidedDraft(undecided(NO_GATEWAY))
                response = await call.ask(call.pair.draft, **call.pair.uncertainty.needs.request())
                answer = answer_of(response.model_dump())
                uncertainty = self.uncertainty(call.pair, answer)
                decision = await round_.decide(uncertainty, usage=usage_of(response))
        except GatewayRefused as error:
            log.error("the gateway refuses to decide, so the expert answers", extra={"error": str(error)})
            return DecidedDraft(undecided(REFUSED_BY_GATEWAY))
        except Exception as error:  # whatever it is, the expert can answer; the ticket was given back
            log.warning("no draft, so the expert answers", extra={"error": f"{type(error).__name__}: {error}"})
            return DecidedDraft(undecided("draft-failed"))
        return DecidedDraft(decision, without_logprobs(response, call.options), answer)

    async def _expert(self, call: ProxiedCall, drafted: DecidedDraft) -> Any:
        """The expert's answer, or an accepted draft where the expert refuses; reports what came of it."""
        try:
            response = await call.ask(call.pair.expert)
        except Exception as error:
            if await self._expert_failed(call, drafted, error):
                return described(drafted.response, drafted.decision, "draft")
            raise
        self._spawn(self._report(call, drafted, response))
        return described(response, drafted.decision, "expert")

    async def _expert_stream(
        self, call: ProxiedCall, drafted: DecidedDraft, queue: "asyncio.Queue[Chunk | Exception | None]"
    ) -> None:
        """The same as a stream, which goes on if its caller leaves."""
        parts: list[Any] = []
        try:
            async for part in await call.ask(call.pair.expert, stream=True, stream_options={"include_usage": True}):
                parts.append(part)
                for chunk in chunks_of_part(part):
                    queue.put_nowait(chunk)
        except Exception as error:
            instead = await self._expert_failed(call, drafted, error) and not parts
            for chunk in chunks_of(drafted.response) if instead else ():
                queue.put_nowait(chunk)
            queue.put_nowait(None if instead else error)
            return
        queue.put_nowait(None)
        await self._report(call, drafted, litellm.stream_chunk_builder(parts, messages=call.messages))

    async def _report(self, call: ProxiedCall, drafted: DecidedDraft, response: Any) -> None:
        if drafted.decision.id is None or drafted.answer is None:
            return
        loss = None
        try:
            expert = answer_of(response.model_dump())
            found = await asyncio.to_thread(self.loss, call.pair, drafted.answer, expert)
            loss = None if found is None else fraction(found, "loss")
        except Exception as error:  # whatever a subclass raises, or NaN: the loss is not known
            about = {"error": f"{type(error).__name__}: {error}"}
            log.warning("a draft cannot be graded: it counts as a loss of 1", extra=about)
        try:
            if loss is None:
                await call.router.forfeit(drafted.decision)
            else:
                await call.router.observe(drafted.decision, loss, usage=usage_of(response))
        except GatewayError as error:
            log.error("a loss could not be reported: it counts as 1", extra={"error": str(error)})

    async def _expert_failed(self, call: ProxiedCall, drafted: DecidedDraft, error: Exception) -> bool:
        """Report that there is no answer of the expert; whether the draft may be served instead."""
        refused = is_refused(_status_of(error))
        self._remember(call)
        try:
            report = call.router.refuse if refused else call.router.forfeit
            recorded = await report(drafted.decision)
        except GatewayError as failure:
            log.error("what came of a round could not be reported", extra={"error": str(failure)})
            return False
        return refused and recorded and drafted.decision.accepted

    def _remember(self, call: ProxiedCall) -> None:
        """Send this call to the expert alone if LiteLLM repeats it: it has had its coin."""
        if call.id:
            self._failed[call.id] = None
            if len(self._failed) > MOST_FAILED:
                self._failed.popitem(last=False)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a task that outlives its request."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller gets it, if there is one


def _status_of(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


handler = BpacProvider()
