"""everlong's searches as backends of a retrieval benchmark: recall@5, recall@10, MRR.

    python tests/benchmarks/retrieval.py --harness FOLDER --set locomo [--store memory]

FOLDER has `retrieval_eval.py` (`load`, `evaluate`) and its `data`. Each conversation is a thread
of a user of its own; a question is what `session_search` is asked. `--facts` saves each turn in
the ledger and asks `memory_search`.
"""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from everlong.stores import ledger, pages, transcript_search, transcripts
from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.entries import Fact
from everlong.stores.postgres import open_stores

NOON = "2026-03-08T12:00:00Z"
DEPTH = 50
Docs = Sequence[tuple[str, str]]


class Backend:
    """Builds a search over a conversation, for a harness that knows no coroutines."""

    def __init__(self, store: BaseStore, runner: asyncio.Runner, *, facts: bool) -> None:
        self.store = store
        self.runner = runner
        self.facts = facts
        self.users = 0

    def build(self, docs: Docs) -> Callable[[str], list[str]]:
        self.users += 1
        user_id = f"user{self.users}"
        add, search = (
            (self._add_facts, self._by_facts) if self.facts else (self._say, self._by_words)
        )
        self.runner.run(add(user_id, docs))
        return lambda query: self.runner.run(search(user_id, query))

    async def _say(self, user_id: str, docs: Docs) -> None:
        said = [HumanMessage(text, id=name) for name, text in docs]
        await transcripts.append(self.store, user_id, "t", said, first=0, instant=NOON)

    async def _by_words(self, user_id: str, query: str) -> list[str]:
        hits = await transcript_search.search(
            self.store, user_id, query, thread_id="t", limit=DEPTH
        )
        return [hit.entry.message_id for hit in hits]

    async def _add_facts(self, user_id: str, docs: Docs) -> None:
        self.names = {" ".join(text.split()): name for name, text in docs}
        for number, text in enumerate(self.names):
            instant = f"2026-03-{number % 28 + 1:02d}T{number // 28 % 24:02d}:{number % 60:02d}:00Z"
            await ledger.append(
                *(self.store, user_id, "flush", [Fact(text)]),
                instant=instant,
                zone="UTC",
                thread_id="t",
                sources=[str(number)],
            )

    async def _by_facts(self, user_id: str, query: str) -> list[str]:
        found = await pages.search(self.store, user_id, query, limit=DEPTH)
        return [self.names.get(one.text.removeprefix("- "), "") for one in found]


@asynccontextmanager
async def opened(kind: str, home: Path) -> Any:
    """Open a store, empty."""
    if kind == "memory":
        yield InMemoryStore()
        return
    with EmbeddedPostgres(home / "home", settings={"fsync": "off"}) as dsn:
        async with open_stores(dsn, pool_size=4) as stores:
            yield stores.store


def main() -> None:
    """Run it as it was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--harness", required=True)
    parser.add_argument("--set", default="locomo")
    parser.add_argument("--store", choices=["postgres", "memory"], default="postgres")
    parser.add_argument("--facts", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, args.harness)
    from retrieval_eval import evaluate, load

    home = Path(mkdtemp(prefix="everlong-retrieval-"))
    home.chmod(0o755)  # where root runs it, the server is somebody else
    conversations = load(args.set, Path(args.harness) / "data")
    try:
        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            store = runner.run(stack.enter_async_context(opened(args.store, home)))
            backend = Backend(store, runner, facts=args.facts)
            print(args.set, args.store, evaluate(conversations, backend.build))
            runner.run(stack.aclose())
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
