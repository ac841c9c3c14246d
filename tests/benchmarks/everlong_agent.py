"""everlong as a contestant of the peer benchmark: copy this file into its `contestants/` folder."""

from contextlib import AsyncExitStack
from typing import Any

from contestants._lc import PYTHON, SYSTEM, fetch_tool  # noqa: F401 - read by the harness

IMPORT = "from everlong.graph.runtime import open_agent; import langchain_openai"
PACKAGES = ["everlong", "langgraph", "langgraph-checkpoint-postgres", "langchain-openai"]
NOTE = (
    "trigger 50 messages or 85% of the window, keep 20 messages; no flush and no consolidation, as "
    "no peer has a memory; transcript, memory and archive tools on; eviction over 80,000 characters"
)
SEARCH = [["session_search", {"query": "{key}"}], ["list_files", {}]]


class EverlongAgent:
    """Drives one thread of everlong on Postgres."""

    @classmethod
    async def create(cls, base_url: str, pg_dsn: str, th: dict[str, Any]) -> "EverlongAgent":
        import os

        from everlong.graph.runtime import open_agent
        from everlong.nodes.context import Compaction, Context, Memory

        os.environ |= {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "x"}  # noqa: TID251
        self = cls()
        self.stack = AsyncExitStack()
        self.agent = await self.stack.enter_async_context(
            open_agent(tools=[fetch_tool()], dsn=pg_dsn)
        )
        self.context = Context(
            user_id="bench",
            model="openai:gpt-4o",
            system_prompt=SYSTEM,
            compaction=Compaction(
                flush_before=False,
                trigger_messages=th["trigger_messages"],
                trigger_tokens=th["max_tokens"],
                keep_messages=th["keep_messages"],
                keep_tokens=0,
                window_tokens=th["window"],
            ),
            memory=Memory(flush="never", consolidate="on_request"),
        )
        self.config = {"configurable": {"thread_id": "t1"}}
        return self

    async def turn(self, user_text: str) -> str:
        given = {"messages": [{"role": "user", "content": user_text}]}
        out = await self.agent.ainvoke(given, self.config, context=self.context)
        return out["messages"][-1].text

    async def stats(self) -> dict[str, Any]:
        values = (await self.agent.aget_state(self.config)).values
        return {"state_messages": len(values.get("messages", []))}

    async def close(self) -> None:
        await self.stack.aclose()


async def build(base_url: str, pg_dsn: str, th: dict[str, Any]) -> EverlongAgent:
    """Return the contestant."""
    return await EverlongAgent.create(base_url, pg_dsn, th)
