"""The experiment on memory, run for real: a fact outlives its session, its document and its words.

Source: experiment E2 of docs/behaviour.md; its numbers have to come out exactly.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from uuid import uuid4

from everlong.graph.agent import utc_now
from everlong.graph.demo import Check, Example, Player, Round, log_lines
from everlong.graph.runtime import Agent
from everlong.nodes.consolidation import consolidation
from everlong.nodes.context import Context, Memory
from everlong.nodes.run import Run
from everlong.stores import ledger, memory, pages
from everlong.stores.entries import TITLES, render_day

TOLD = (
    "Don't call any tool, just confirm: our exports go through Shanghai port only, "
    "customer code ALPHA."
)
ASKED = "Which port do our exports use, and what is the customer code?"
RESTORE = (
    'Restore the document: call memory_save {"content": "Our exports go through Shanghai port '
    'only, customer code ALPHA."}'
)
NAMED = ["Shanghai", "ALPHA"]
SECTION = f"## {TITLES['flush']} — "


@dataclass(kw_only=True)
class Experiment:
    """One user's memory across sessions."""

    agent: Agent
    context: Context
    run: str
    spent: Counter[str] = field(default_factory=Counter[str])
    """Requests so far, by kind."""

    @property
    def user_id(self) -> str:
        """Whose memory it is."""
        return str(self.context.user_id)

    async def say(self, session: int, question: str) -> tuple[Round, list[str]]:
        """Say something in a session; return what happened, and the names of the tools called."""
        player = Player(
            agent=self.agent, context=self.context, thread_id=f"E2-{self.run}-{session}"
        )
        known = len(await player.messages())
        done, _ = await player.play(question)
        new = (await player.messages())[known:]
        called = [call["name"] for one in new for call in getattr(one, "tool_calls", ())]
        values = (await self.agent.aget_state(player.config)).values
        self.spent.update(one["kind"] for one in values["call"]["requests"])
        return done, called

    async def consolidate(self) -> Round:
        """Rewrite MEMORY.md, as a person may ask for."""
        run = Run(
            context=self.context,
            user_id=self.user_id,
            thread_id="",
            store=self.agent.store,
            instant=utc_now().isoformat(),
            tell=lambda _: None,
        )
        with log_lines() as lines:
            requests = await consolidation(run)
        self.spent.update(one["kind"] for one in requests)
        return Round(
            question="(consolidation on request)",
            before=[],
            requests=[],
            log=list(lines),
            after=[],
            answer=await self.document(),
        )

    async def document(self) -> str:
        """Return MEMORY.md as a reader sees it; empty where there is none."""
        return await pages.document_text(self.agent.store, self.user_id)

    async def ledger(self) -> str:
        """Return all that the ledger says."""
        return render_day(await ledger.entries(self.agent.store, self.user_id))


async def fact_across_sessions(agent: Agent) -> Example:
    """E2: told in one session, answered in the next, from the document and then from the ledger."""
    run = uuid4().hex[:8]
    context = Context(
        user_id=f"demo-{run}", model="offline", memory=Memory(consolidate="on_request")
    )
    one = Experiment(agent=agent, context=context, run=run)
    rounds = [
        await _told(one),
        await _consolidated(one),
        await _from_document(one),
        await _from_ledger(one),
        await _restored(one),
    ]
    return Example(
        name="E2",
        title="A fact outlives its session and its document",
        user_id=one.user_id,
        thread_id=f"E2-{run}-1 to -3",
        rounds=rounds,
    )


async def _told(one: Experiment) -> Round:
    done, called = await one.say(1, TOLD)
    return _with(
        done,
        Check(what="tool calls", expected=0, got=len(called)),
        Check(what="ledger sections", expected=1, got=(await one.ledger()).count(SECTION)),
        Check(what="MEMORY.md", expected="", got=await one.document()),
    )


async def _consolidated(one: Experiment) -> Round:
    before = await one.ledger()
    done = await one.consolidate()
    return _with(
        done,
        Check(what="MEMORY.md names", expected=NAMED, got=_named(done.answer)),
        Check(what="the ledger is as it was", expected=True, got=await one.ledger() == before),
    )


async def _from_document(one: Experiment) -> Round:
    done, _ = await one.say(2, ASKED)
    return _with(
        done,
        Check(what="the answer names", expected=NAMED, got=_named(done.answer)),
        Check(what="Source: MEMORY.md", expected=True, got="Source: MEMORY.md" in done.answer),
    )


async def _from_ledger(one: Experiment) -> Round:
    await memory.clear(one.agent.store, one.user_id)
    gone = await one.document()
    done, _ = await one.say(3, ASKED)
    (day,) = await ledger.days(one.agent.store, one.user_id)
    source = f"Source: memory/{day}.md"
    return _with(
        replace(done, question=f"(MEMORY.md is removed; a new session) {ASKED}"),
        Check(what="MEMORY.md", expected="", got=gone),
        Check(what="the answer names", expected=NAMED, got=_named(done.answer)),
        Check(what=source, expected=True, got=source in done.answer),
        Check(what="flushes of the three calls", expected=3, got=one.spent["flush"]),
    )


async def _restored(one: Experiment) -> Round:
    done, called = await one.say(3, RESTORE)
    return _with(
        done,
        Check(what="tool calls", expected=["memory_save"], got=called),
        Check(what="MEMORY.md names", expected=NAMED, got=_named(await one.document())),
        Check(what="consolidations in all", expected=1, got=one.spent["consolidation"]),
    )


def _with(done: Round, *checks: Check) -> Round:
    return replace(done, checks=list(checks))


def _named(text: str) -> list[str]:
    return [name for name in NAMED if name in text]
