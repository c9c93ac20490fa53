"""Record: what a model is shown when it writes a summary, and all that its answer is held against.

Pure, and slow for a long conversation: call it off the event loop.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ricordo.compaction.lines import shorten_ids
from ricordo.compaction.quotes import normalize_quote
from ricordo.compaction.rendering import render_messages
from ricordo.compaction.sections import SummarySections, parse_leniently, render_sections
from ricordo.compaction.steps import Citations, find_citations
from ricordo.compaction.summary_message import summary_body
from ricordo.flush.lessons import is_learnable
from ricordo.guard import FencedItem
from ricordo.messages import Message, get_mark

__all__ = ["ConversationRecord", "build_record"]


@dataclass(frozen=True, kw_only=True)
class ConversationRecord:
    """A conversation for the model: its `items`, the `earlier` summary as text, and what may be said of them.

    `to_learn` are the messages to learn from, by the id of their item; `text` is the text that quotes are looked for in.
    """

    items: tuple[FencedItem, ...]
    earlier: str
    to_learn: Mapping[str, Message]
    text: str
    citations: Citations


def build_record(messages: Sequence[Message], pending: Collection[str], *, sectioned: bool) -> ConversationRecord:
    """Return the record of `messages`, of which those in `pending` are to be learned from.

    With `build_sections` earlier summaries are kept apart, line by line; without it they are items like all others.
    """
    names = shorten_ids([message.id for message in messages])
    learn = {names[each.id]: each for each in messages if each.id in pending and is_learnable(each)}
    summaries = [summary_body(message) for message in messages if get_mark(message) == "summary"]
    shown = [message for message in messages if not sectioned or get_mark(message) != "summary"]
    items = render_messages(shown, names=names, new=frozenset(learn))
    earlier = _join_sections(summaries) if sectioned else SummarySections()
    asked = {each.id for each in messages if each.role == "user" and get_mark(each) is None and each.id}
    others = {each.id for each in messages if each.id and get_mark(each) != "summary"} - asked
    steps = frozenset(find_citations(earlier.lines[3]))
    return ConversationRecord(
        items=items,
        earlier=render_sections(earlier) if earlier else "",
        to_learn=learn,
        text=normalize_quote("\n".join([*(item.text for item in items), *summaries])),
        citations=Citations(requests=frozenset(asked) | steps, others=frozenset(others) - steps),
    )


def _join_sections(summaries: Sequence[str]) -> SummarySections:
    intent, summary, artifacts, steps = (
        tuple(line for each in summaries for line in parse_leniently(each).lines[at]) for at in range(4)
    )
    return SummarySections(lines=(intent, summary, artifacts, steps))
