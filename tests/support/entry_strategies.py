"""Entries that say anything, for codecs and stores: what is hard to write down is common in them."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from ricordo import Entry
from ricordo.clock import truncate_to_milliseconds
from ricordo.scope import Scope
from ricordo.workspace import Source

__all__ = ["CONTENTS", "ENTRIES", "TEXTS"]

LOOKALIKES = st.sampled_from(
    [
        "#tag",
        "[kind:: x]",
        "^abc",
        "# Title",
        "```",
        "~~~",
        "- item",
        "\\",
        "\\s",
        "\\#",
        "\n",
        "\n\n",
        " ",
        "\t",
        "\r\n",
        "\u2028",
        "\x00",
        "🦊",
        "עברית",
        "中文",
        "[at:: 2026",
        "]",
        "---",
        "\\u{1b}",
        "\\e",
        "\u00a0",
        "\ufeff",
        "^",
        "* x",
    ]
)
TEXTS = st.lists(st.one_of(LOOKALIKES, st.text(max_size=12)), min_size=1, max_size=8).map("".join)
CONTENTS = TEXTS.filter(lambda text: bool(text.strip()))
TIMES = st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)).map(truncate_to_milliseconds)
NAMES = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)
SOURCES = st.builds(
    Source,
    session=st.none() | NAMES,
    messages=st.lists(NAMES, max_size=3).map(tuple),
    quote=st.none() | TEXTS,
    origin=st.none() | TEXTS,
)
TOOLS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
RULES = st.builds("{} {}(x{})".format, st.sampled_from(["deny", "ask", "Deny"]), TOOLS, TEXTS)
ENTRIES = st.builds(
    Entry,
    content=CONTENTS,
    kind=st.sampled_from(["fact", "decision", "my own kind"]) | CONTENTS,
    tags=st.lists(NAMES | TEXTS, max_size=4).map(tuple),
    id=st.just("") | st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=26, max_size=26),
    time=st.none() | TIMES,
    since=st.none() | TIMES,
    scope=st.none() | st.builds(Scope, user=NAMES, project=st.none() | NAMES),
    by=st.sampled_from(["user", "agent", "flush", "import", "hand"]),
    source=SOURCES,
    confidence=st.floats(0, 1),
    state=st.sampled_from(["active", "superseded", "retired"]),
    supersedes=st.none() | NAMES,
    pinned=st.booleans(),
    confirmed=st.none() | TIMES,
    reason=st.none() | TEXTS,
    rule=st.none() | RULES,
    extra=st.lists(st.tuples(st.sampled_from(["due", "x-other", "status"]), TEXTS), max_size=2).map(tuple),
)
