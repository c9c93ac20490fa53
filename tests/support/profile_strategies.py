"""Strategies for profiles of any content."""

from hypothesis import strategies as st

from ricordo.messages import JsonValue
from ricordo.workspace import HISTORY_SUMMARIES, USER_SUMMARIES, Fact, FactSource, Profile, ProfileSummary

__all__ = ["facts", "profiles", "summaries"]

_TEXT = st.text(max_size=12)
_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=3,
)


def _extra() -> st.SearchStrategy[dict[str, JsonValue]]:
    """Return fields of names that nobody else has."""
    return st.dictionaries(_TEXT.map("x-{}".format), _VALUES, max_size=2)


def summaries() -> st.SearchStrategy[ProfileSummary]:
    """Return summaries of any text."""
    return st.builds(ProfileSummary, summary=_TEXT, updated_at=_TEXT, extra=_extra())


def facts(name: str = "fact_1") -> st.SearchStrategy[Fact]:
    """Return facts with this id."""
    source = st.builds(FactSource, thread=_TEXT, messages=st.lists(_TEXT, max_size=2).map(tuple), quote=_TEXT)
    return st.builds(
        Fact, id=st.just(name), content=_TEXT, category=_TEXT, confidence=st.floats(0, 1), created_at=_TEXT,
        updated_at=_TEXT, source=source, source_error=st.none() | _TEXT, valid_days=st.none() | st.integers(),
        confirmed_at=_TEXT, confirmations=st.integers(1), reviewed_at=_TEXT, pinned=st.booleans(),
        merged_from=st.lists(_TEXT, max_size=2).map(tuple), revision=st.integers(1), extra=_extra(),
    )  # fmt: skip


def profiles(*, most: int = 3) -> st.SearchStrategy[Profile]:
    """Return profiles with at most so many facts, whose ids are their own."""
    listed = st.lists(st.text(min_size=1, max_size=6), max_size=most, unique=True).flatmap(
        lambda names: st.tuples(*(facts(name) for name in names))
    )
    sections = st.fixed_dictionaries({name: summaries() for name in (*USER_SUMMARIES, *HISTORY_SUMMARIES)})
    rest = st.builds(lambda extra, user: {**extra, **({"user": user} if user else {})}, _extra(), _extra())
    return st.builds(
        Profile, version=_TEXT, revision=st.integers(0), last_updated=_TEXT, summaries=sections, facts=listed,
        extra=rest,
    )  # fmt: skip
