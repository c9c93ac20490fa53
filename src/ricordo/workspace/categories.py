"""Kinds of memories and categories of facts: one map each way, so that a fact is the same thing in both places."""

from collections.abc import Mapping

__all__ = ["category_of", "kind_of"]

_CATEGORY_OF: Mapping[str, str] = {
    "fact": "context",
    "decision": "context",
    "preference": "preference",
    "lesson": "knowledge",
    "convention": "behavior",
    "goal": "goal",
}
_KIND_OF: Mapping[str, str] = {
    "preference": "preference",
    "knowledge": "fact",
    "context": "fact",
    "behavior": "convention",
    "goal": "goal",
    "correction": "fact",
}


def category_of(kind: str) -> str:
    """Return the category of a fact that was a memory of this kind; an unknown kind is its own category."""
    return _CATEGORY_OF.get(kind, kind)


def kind_of(category: str) -> str:
    """Return the kind of a memory that was a fact of this category; an unknown category is a plain fact."""
    return _KIND_OF.get(category, "fact")
