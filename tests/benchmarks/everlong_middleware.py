"""The middleware as a contestant of the peer benchmark: copy it beside `everlong_agent.py`."""

from contextlib import AsyncExitStack
from typing import Any

from contestants._lc import PYTHON, SYSTEM, chat_model, fetch_tool  # noqa: F401 - read by the harness

IMPORT = "from everlong.graph.middleware import EverlongMiddleware; import langchain_openai"
PACKAGES = ["everlong", "langchain", "langgraph-checkpoint-postgres", "langchain-openai"]
NOTE = (
    "`create_agent` with `EverlongMiddleware` on LangGraph's own saver and store; the settings of "
    "everlong_agent"
)
SEARCH = [["session_search", {"query": "{key}"}], ["list_files", {}]]


class MiddlewareAgent:
    """Drives one thread of langchain's agent with our middleware on Postgres."""

    @classmethod
    async def create(cls, base_url: str, pg_dsn: str, th: dict[str, Any]) -> "MiddlewareAgent":
        from langchain.agents import create_agent
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from langgraph.store.postgres.aio import AsyncPostgresStore

        from everlong.graph.middleware import EverlongMiddleware

        self = cls()
        self.stack = AsyncExitStack()
        opened = self.stack.enter_async_context
        saver = await opened(AsyncPostgresSaver.from_conn_string(pg_dsn))
        store = await opened(AsyncPostgresStore.from_conn_string(pg_dsn))
        await saver.setup()
        await store.setup()
        compaction = {
            "flush_before": False,
            "trigger_messages": th["trigger_messages"],
            "trigger_tokens": th["max_tokens"],
            "keep_messages": th["keep_messages"],
            "keep_tokens": 0,
            "window_tokens": th["window"],
        }
        memory = {"flush": "never", "consolidate": "on_request"}
        self.agent = create_agent(
            chat_model(base_url, th),
            [fetch_tool()],
            system_prompt=SYSTEM,
            middleware=[EverlongMiddleware({"compaction": compaction, "memory": memory})],
            checkpointer=saver,
            store=store,
        )
        self.config = {"configurable": {"thread_id": "t1"}, "recursion_limit": 100}
        return self

    async def turn(self, user_text: str) -> str:
        given = {"messages": [{"role": "user", "content": user_text}]}
        out = await self.agent.ainvoke(given, self.config, context={"user_id": "bench"})
        return out["messages"][-1].text

    async def stats(self) -> dict[str, Any]:
        values = (await self.agent.aget_state(self.config)).values
        return {"state_messages": len(values.get("messages", []))}

    async def close(self) -> None:
        await self.stack.aclose()


async def build(base_url: str, pg_dsn: str, th: dict[str, Any]) -> MiddlewareAgent:
    """Return the contestant."""
    return await MiddlewareAgent.create(base_url, pg_dsn, th)
