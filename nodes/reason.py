"""Node `reason`: ask the model for the next message."""

import time
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from everlong.nodes.attempts import reported
from everlong.nodes.context import Context
from everlong.nodes.hearing import Heard
from everlong.nodes.inner import record_of
from everlong.nodes.meter import after_answer, counted
from everlong.nodes.models import load
from everlong.nodes.overflow import Overflow, overflow_in
from everlong.nodes.recall import recall
from everlong.nodes.request import request_messages
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import State, Update
from everlong.nodes.storable import without_faults
from everlong.nodes.tidying import name_calls
from everlong.nodes.toolbox import Toolbox
from everlong.nodes.usage import usage_of
from everlong.nodes.windows import name_of


async def reason(state: State, runtime: Runtime[Context], *, toolbox: Toolbox) -> Update:
    """Ask the model; a request that is too long is noted for `compact`, once in a call.

    Reads `messages`, `call`, `injected`, `meter`. Writes `messages`, `call`, `meter`, and
    `recalled` after a restart.

    Raises:
        Exception: the provider's own, where it is no overflow, the second one of the call, or one
            that came after a part of the answer was given out.
    """
    run = run_of(state, runtime)
    state = await reported(run, state, runtime)
    recalled = await _recalled(run, state)
    last_round = state.call.get("tool_rounds", 0) > run.context.max_tool_rounds
    names = () if last_round else toolbox.offered(run.context)
    model = toolbox.bind(await load(run.context.model), names)
    request = request_messages(
        run.context, state.injected, state.messages, toolbox.offered(run.context)
    )
    heard = Heard()
    began = time.perf_counter()
    try:
        answer = await model.ainvoke(request, config=heard.config())
    except Exception as error:
        found = None if heard.anything else overflow_in(error)
        may_retry = run.context.compaction.overflow_retry and not state.call.get("overflowed")
        if found is None or not may_retry:
            raise
        return _refused(run, state, found)
    return _update(state, answer, began, recalled=recalled, last_round=last_round)


async def _recalled(run: Run, state: State) -> dict[str, Any]:
    """Return what the call recalled; read again where a restart lost it."""
    if state.recalled or not state.call.get("memory_version"):
        return state.recalled
    return await recall(run)


def _refused(run: Run, state: State, found: Overflow) -> Update:
    """Note a refusal for `compact`, and the window that it named for every later call."""
    overflow = {"limit": found.limit, "requested": found.requested}
    update = Update(call=state.call | {"overflow": overflow, "overflowed": True})
    if found.limit:
        update["named_windows"] = state.named_windows | {name_of(run.context.model): found.limit}
    return update


def _update(
    state: State,
    answer: AIMessage,
    began: float,
    *,
    recalled: dict[str, Any],
    last_round: bool,
) -> Update:
    if last_round and (answer.tool_calls or answer.invalid_tool_calls):
        answer = AIMessage(
            answer.text or "I have used all the tool rounds of this call without coming to an end.",
            id=answer.id,
            usage_metadata=answer.usage_metadata,
            response_metadata=answer.response_metadata,
        )
    answer = name_calls(without_faults(answer))
    usage = usage_of(answer)
    record = record_of("answer", answer, began)
    requests = [*state.call.get("requests", []), record]
    update = Update(
        messages=[answer],
        call=state.call | {"requests": requests},
        meter=after_answer(
            counted(state.messages, state.meter),
            answer,
            input_tokens=usage.input if usage and not last_round else 0,
            fixed_tokens=state.call.get("fixed_tokens", 0),
        ),
    )
    if recalled is not state.recalled:
        update["recalled"] = recalled
    return update
