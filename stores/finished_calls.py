"""Results of tool calls that finished while another call of the same message waits for a person.

Kept until the thread goes on, so that a user who types instead of answering loses none of them
and no call runs twice.
"""

import json
from collections.abc import Sequence

from langchain_core.messages import ToolMessage, messages_from_dict
from langgraph.store.base import BaseStore, PutOp

from everlong.stores.namespaces import key, space
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean
from everlong.stores.transcripts import pack, unpack


async def keep(
    store: BaseStore,
    user_id: str,
    thread_id: str,
    ai_message_id: str,
    messages: Sequence[ToolMessage],
) -> None:
    """Keep the results of some calls of an assistant message; keeping them twice is harmless."""
    place = space(user_id, "finished_calls", thread_id, ai_message_id)
    puts = [
        PutOp(
            place,
            key(message.tool_call_id),
            clean(await pack(store, user_id, message)),
            index=False,
        )
        for message in messages
    ]
    await put_all(store, puts)


async def find(
    store: BaseStore, user_id: str, thread_id: str, ai_message_id: str
) -> dict[str, ToolMessage]:
    """Return what was kept for an assistant message, by the id of the call.

    Raises:
        LookupError: the file of a long result is gone.
    """
    place = space(user_id, "finished_calls", thread_id, ai_message_id)
    items = await all_items(store, place)
    stored = [await unpack(store, user_id, **item.value) for item in items]
    messages = messages_from_dict([json.loads(one) for one in stored])
    return {one.tool_call_id: one for one in messages if isinstance(one, ToolMessage)}


async def drop(store: BaseStore, user_id: str, thread_id: str, ai_message_id: str) -> None:
    """Forget what was kept for an assistant message."""
    place = space(user_id, "finished_calls", thread_id, ai_message_id)
    await put_all(store, [PutOp(place, item.key, None) for item in await all_items(store, place)])
