"""Kinds of memories and categories of facts: one map each way, so that a fact is the same thing in both places."""

from collections.abc import Mapping

__all__ = ["category_for_kind", "kind_for_category"]

_CATEGORY_BY_KIND: Mapping[str, str] = {
    "fact": "context",
    "decision": "context",
    "preference": "preference",
    "lesson": "knowledge",
    "convention": "behavior",
    "goal": "goal",
}
_KIND_BY_CATEGORY: Mapping[str, str] = {
    "preference": "preference",
    "knowledge": "fact",
    "context": "fact",
    "behavior": "convention",
    "goal": "goal",
    "correction": "fact",
}


def category_for_kind(kind: str) -> str:
    """Return the category of a fact that was a memory of this kind; an unknown kind is its own category."""
    return _CATEGORY_BY_KIND.get(kind, kind)


def kind_for_category(category: str) -> str:
    """Return the kind of a memory that was a fact of this category; an unknown category is a plain fact."""
    return _KIND_BY_CATEGORY.get(category, "fact")
