"""Calls that leave memory work behind, and whoever does it."""

from dataclasses import dataclass

from everlong.graph.worker import hands_on
from everlong.nodes.working import work_through
from everlong.stores import ledger
from scripted_model import ScriptedModel, kind_of

PORT = "- Exports go through Shanghai port only."


@dataclass
class Told:
    """A model that keeps each fact that a flush's conversation states, and fails where told to."""

    fails: bool = False

    def model(self, *facts):
        return ScriptedModel(script=lambda messages: self.answer(messages, facts))

    def answer(self, messages, facts):
        kind = kind_of(messages)
        if self.fails and kind != "answer":
            msg = "503 overloaded"
            raise RuntimeError(msg)
        text = messages[-1].text
        if kind == "flush":
            said = text.split("<conversation>")[1]
            return "\n".join(fact for fact in facts if fact.split()[1] in said) or "NO_REPLY"
        if kind == "consolidation":
            known = text.split("<document>")[1].splitlines()
            lines = [line for line in known if line.startswith("- ")]
            return "\n".join(["# Known", *dict.fromkeys(lines)])
        return "SUMMARY" if kind == "summary" else "Confirmed."


async def facts_of(store, user_id="kim"):
    return [fact.text for entry in await ledger.entries(store, user_id) for fact in entry.facts]


async def drained(talk, user_id=None, clock=None):
    """Have everything done that is free; return what came of each record."""
    finished = []
    hands = hands_on(talk.store, clock or talk.clock)
    await work_through(hands, user_id, tell=finished.append)
    return finished


def flushes(model):
    return [request[-1].text for request in model.requests if kind_of(request) == "flush"]
