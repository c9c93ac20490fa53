"""Record: what a model is shown when it writes a summary, and all that its answer is held against.

Pure, and slow for a long conversation: call it off the event loop.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ricordo.compaction.lines import short_ids
from ricordo.compaction.quotes import folded
from ricordo.compaction.rendering import rendered
from ricordo.compaction.sections import Sections, loosely, render
from ricordo.compaction.steps import Cites, cites_in
from ricordo.compaction.summary_message import body_of
from ricordo.flush.lessons import learnable
from ricordo.guard import Quoted
from ricordo.messages import Message, mark_of

__all__ = ["Record", "recorded"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A conversation for the model: its `items`, the `earlier` summary as text, and what may be said of them.

    `learn` are the messages to learn from, by the id of their item; `said` is the text that quotes are looked for in.
    """

    items: tuple[Quoted, ...]
    earlier: str
    learn: Mapping[str, Message]
    said: str
    cites: Cites


def recorded(messages: Sequence[Message], pending: Collection[str], *, sectioned: bool) -> Record:
    """Return the record of `messages`, of which those in `pending` are to be learned from.

    With `sectioned` earlier summaries are kept apart, line by line; without it they are items like all others.
    """
    names = short_ids([message.id for message in messages])
    learn = {names[each.id]: each for each in messages if each.id in pending and learnable(each)}
    summaries = [body_of(message) for message in messages if mark_of(message) == "summary"]
    shown = [message for message in messages if not sectioned or mark_of(message) != "summary"]
    items = rendered(shown, names=names, new=frozenset(learn))
    earlier = _joined(summaries) if sectioned else Sections()
    asked = {each.id for each in messages if each.role == "user" and mark_of(each) is None and each.id}
    others = {each.id for each in messages if each.id and mark_of(each) != "summary"} - asked
    steps = frozenset(cites_in(earlier.lines[3]))
    return Record(
        items=items,
        earlier=render(earlier) if earlier else "",
        learn=learn,
        said=folded("\n".join([*(item.text for item in items), *summaries])),
        cites=Cites(asked=frozenset(asked) | steps, others=frozenset(others) - steps),
    )


def _joined(summaries: Sequence[str]) -> Sections:
    intent, summary, artifacts, steps = (
        tuple(line for each in summaries for line in loosely(each).lines[at]) for at in range(4)
    )
    return Sections(lines=(intent, summary, artifacts, steps))
