"""Chat models that a process holds as objects, for the work that its calls leave behind (R50).

A record in the store can name a model; an object it cannot hold. The process that has it does the
record, or, where that process has ended, a worker with a model of its own.
"""

from collections import OrderedDict

from langchain_core.language_models import BaseChatModel

from everlong.stores.work import process

MOST_HELD = 1_000
"""Where a call has a model of its own, so many records may wait at once."""
_HELD: OrderedDict[str, BaseChatModel] = OrderedDict()


def name_for_work(model: BaseChatModel | str) -> str:
    """Return the name of a model in a record; of an object, one that only this process knows."""
    if isinstance(model, str):
        return model
    token = f"object:{process()}:{id(model):x}"
    _HELD[token] = model
    _HELD.move_to_end(token)
    while len(_HELD) > MOST_HELD:
        _HELD.popitem(last=False)
    return token


def is_unnamed(name: str) -> bool:
    """Tell an object's name, which only its process knows."""
    return name.startswith("object:")


def held(name: str) -> BaseChatModel | str | None:
    """Return what goes by this name in a record; None where this process does not hold it."""
    return _HELD.get(name) if is_unnamed(name) else name
