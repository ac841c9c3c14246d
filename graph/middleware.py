"""Middleware for langchain's `create_agent`: our compaction, eviction and memory, from our nodes.

    agent = create_agent(
        model, my_tools, middleware=[EverlongMiddleware()], checkpointer=saver, store=store
    )
    await agent.ainvoke({"messages": [...]}, config, context={"user_id": "u1"})

Put it first, so that it is around the others, but after one that falls back on another model, which
would else catch an overflow before it. Around each model call it does what our own graph does
between two of them: evict, compact, ask, and on a refusal compact and ask again. After a run it
keeps what that has brought, and writes the history as the model has seen it.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Never, NotRequired, cast

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
except ModuleNotFoundError as error:
    msg = "the middleware needs its extra: pip install 'everlong[middleware]'"
    raise ModuleNotFoundError(msg) from error
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.channels import UntrackedValue
from langgraph.prebuilt import ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from everlong.graph.agent import Clock, utc_now
from everlong.graph.callers import checked
from everlong.graph.foreign import OF_RUN, Work, work_on
from everlong.graph.foreign_tools import Execute, Outcome, ours_in, small, tools_of
from everlong.graph.requests import (
    Asked,
    listening,
    request_of,
    sized,
    with_malformed_answered,
    with_overtaken,
)
from everlong.graph.steps import (
    compacted,
    evicted,
    forgotten,
    opened,
    refused,
    remembered,
    told,
)
from everlong.graph.views import has_view, seen, view_of, written_out
from everlong.nodes.context import Context, Memory, context_within
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.guidance import READ_STORED
from everlong.nodes.inner import record_of
from everlong.nodes.live_models import held, name_for_work
from everlong.nodes.meter import after_answer, counted
from everlong.nodes.overflow import Overflow, overflow_in
from everlong.nodes.run import is_inside, thread_of
from everlong.nodes.state import Update
from everlong.nodes.usage import usage_of

Response = ModelResponse[Any]
Handler = Callable[[ModelRequest[Any]], Awaitable[Response]]
NOT_OURS = ("max_tool_rounds", "model", "system_prompt")
"""Settings that are the agent's own affair."""
ASYNC_ONLY = (
    "EverlongMiddleware: expected `ainvoke` or `astream`; got `invoke` or `stream`. It works "
    "asynchronously. Write `asyncio.run(agent.ainvoke(...))` where no loop runs."
)


class EverlongState(AgentState[Any]):
    """The agent's state with our channels; their names are stored data."""

    everlong: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """Our small channels, as one value."""
    everlong_run: NotRequired[Annotated[dict[str, Any], UntrackedValue, PrivateStateAttr]]
    """What the run has read and no checkpoint holds: MEMORY.md."""


class EverlongMiddleware(AgentMiddleware[Any, Any, Any]):
    """Compaction, eviction and memory for an agent of langchain's, or of deepagents.

    `settings` are those of `Context`, but for what the agent has of its own: `model`,
    `system_prompt`. They hold where the context of a run does not say otherwise.

    Raises:
        InvalidInputError: a setting is unknown, out of range, or the agent's own.
    """

    state_schema = EverlongState

    def __init__(
        self,
        settings: Context | Mapping[str, Any] | None = None,
        *,
        name: str = "EverlongMiddleware",
        clock: Clock = utc_now,
    ) -> None:
        self._defaults = checked(settings)
        if own := sorted(set(NOT_OURS) & set(self._defaults)):
            msg = (
                f"`settings`: expected none of {', '.join(NOT_OURS)}, which are the agent's own; "
                f"got {own}. `summary_model` and `memory_model` are for our requests."
            )
            raise InvalidInputError(msg)
        self._name = name
        self._clock = clock
        self.tools: Sequence[BaseTool] = tools_of(settings, clock=clock)

    @property
    def name(self) -> str:
        """The name under which agents know it; with another middleware's it takes its place."""
        return self._name

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ExtendedModelResponse[Any]:
        """Evict and compact what is over its limit, then ask; once more where that was too long.

        Raises:
            Exception: the model's own, where it is no overflow, or a second one of the run.
        """
        context = self._context(request.runtime).model_copy(
            update={"model": request.model, "system_prompt": request.system_prompt or ""}
        )
        asked = Asked(request, context, self.tools)
        messages = with_malformed_answered(seen(request.state))
        name = name_for_work(request.model)
        work = work_on(
            request.state, request.runtime, messages=messages, context=context, model=name
        )
        if not work.has_begun:
            work = await opened(await with_overtaken(work), asked, self._clock)
        work = await forgotten(await told(work, may_wait=True), asked)
        work = await compacted(await evicted(work, asked), asked)
        began = time.perf_counter()
        answered = await _asked_once(request_of(request, work, asked), handler, work)
        if isinstance(answered, Overflow):
            refusal = {"limit": answered.limit, "requested": answered.requested}
            work = await compacted(refused(work, refusal), asked)
            answered = await handler(request_of(request, work, asked))
        return _response(request.state, work, answered, began)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Execute) -> Outcome:
        """Run a call; move a result that is too long away before any checkpoint holds it."""
        given = cast("ToolRuntime[Any, Any]", request.runtime)
        runtime = ours_in(given, self._defaults, "messages", self._clock)
        return await small(sized(runtime), await handler(request), reader=READ_STORED)

    async def aafter_agent(
        self, state: Mapping[str, Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """Keep what the run has brought: transcript, facts, and MEMORY.md where that is due."""
        of_run: Mapping[str, Any] = state.get(OF_RUN) or {}
        name = str(of_run.get("model", ""))
        context, model = self._context(runtime), held(name) if name else None
        context = context.model_copy(update={"model": model})
        work = work_on(state, runtime, messages=seen(state), context=context, model=name)
        if model is not None:  # else it was resumed elsewhere, and the next run makes up for it
            work = await remembered(await told(work, may_wait=True))
            work = await told(work, may_wait=False)
        if not has_view(state) or _is_passing(runtime):  # no summary goes to who asks in passing
            return work.update()
        return work.update() | {"messages": written_out(work.state.messages)}

    def _context(self, runtime: Runtime[Any]) -> Context:
        """Return the run's settings; what one agent tells another in passing is no memory."""
        context = context_within(runtime.context, self._defaults)
        if _is_passing(runtime):
            return context.model_copy(update={"memory": Memory(enabled=False)})
        return context

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Never:  # noqa: ARG002 - refused
        """Refuse.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(ASYNC_ONLY)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Any) -> Never:  # noqa: ARG002 - refused
        """Refuse.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(ASYNC_ONLY)


def _is_passing(runtime: Runtime[Any]) -> bool:
    """Tell an agent that another graph asks, and that begins anew each time."""
    return is_inside(runtime) and not thread_of(runtime)


async def _asked_once(
    request: ModelRequest[Any], handler: Handler, work: Work
) -> Response | Overflow:
    """Return the answer, or the refusal that a compaction has to answer.

    Raises:
        Exception: the model's own, where it is no overflow, one that came after a part of the
            answer was given out, or the second one of the run.
    """
    with listening() as heard:
        try:
            return await handler(request)
        except Exception as error:
            found = None if heard.anything else overflow_in(error)
            may_retry = work.runtime.context.compaction.overflow_retry
            if found is None or not may_retry or work.state.call.get("overflowed"):
                raise
            return found


def _response(
    values: Mapping[str, Any], work: Work, response: Response, began: float
) -> ExtendedModelResponse[Any]:
    """Return the answer and our channels; the history stays as it is while the run goes."""
    answer = next((one for one in response.result if isinstance(one, AIMessage)), None)
    if answer is not None:
        work = _metered(work, answer, began)
    is_changed = bool(work.written) or has_view(values)
    more = view_of(values["messages"], work.state.messages) if is_changed else {}
    update = work.seeing(response.result).update(more=more)
    update.pop("messages", None)
    return ExtendedModelResponse(model_response=response, command=Command(update=update))


def _metered(work: Work, answer: AIMessage, began: float) -> Work:
    state, usage = work.state, usage_of(answer)
    requests = [*state.call.get("requests", []), record_of("answer", answer, began)]
    meter = after_answer(
        counted(state.messages, state.meter),
        answer,
        input_tokens=usage.input if usage else 0,
        fixed_tokens=state.call.get("fixed_tokens", 0),
    )
    return work.with_update(Update(call=state.call | {"requests": requests}, meter=meter))
