"""Permissions: which tool calls may be made, by rules that a person reads and writes as one line of text. Pure.

    deny shell(git push --force*)
    ask write_file(src/*)
    allow shell(git status)

A rule names a tool and what the call acts on, both with `*` for anything. A denial counts before a question, and a
question before a permission, wherever they stand.

Invariants: a call that a denial or a question matches is never let through by a permission; a rule is read back from
its text as what it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "Called",
    "Decision",
    "PermissionRule",
    "ToolPattern",
    "decide",
    "parse_rule",
    "render_rule",
    "texts_of",
]

Decision: TypeAlias = Literal["allow", "deny", "ask"]
"""What a rule says of a call: let it through unasked, refuse it, or ask a person."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """A call as rules see it: `argument` is what it acts on, such as a command or a path, `texts` are all texts among
    its arguments, that one included."""

    tool: str
    argument: str = ""
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolPattern:
    """The calls of `tool` on `argument`; `*` stands for any characters, and an empty `argument` for any call."""

    tool: str
    argument: str = ""


@dataclass(frozen=True, kw_only=True)
class PermissionRule:
    """What is decided for the calls of a pattern; `why` is told to the model, `source` says who made the rule."""

    decision: Decision
    pattern: ToolPattern
    why: str = ""
    source: str = ""


def decide(rules: Iterable[PermissionRule], called: Called) -> PermissionRule | None:
    """Return the rule that decides a call, None when none speaks of it."""
    raise NotImplementedError


def parse_rule(text: str, *, why: str = "", source: str = "") -> PermissionRule:
    """Return the rule that a line says, such as `deny shell(git push*)`. Raises: InvalidSetting, which says how."""
    raise NotImplementedError


def render_rule(rule: PermissionRule) -> str:
    """Return the line that `parse_rule` reads."""
    raise NotImplementedError


def texts_of(arguments: object) -> Sequence[str]:
    """Return every text among the arguments of a call, at any depth, in order."""
    raise NotImplementedError
