"""The system prompt: its parts in their order, and what it says about the tools of memory. Pure.

The order is from what changes least to what changes most, and from who may command to what is only data: the base
prompt, AGENTS.md, the rules, the guidance about memory, the preamble. Missing parts leave no trace. What people wrote
is framed with the file it comes from; the frame can't be closed from inside.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ricordo.guard import Quoted, Trust, fence

__all__ = ["HumanText", "memory_guidance", "system_prompt"]

_WRITTEN = "Written by people for this project: follow it."
_FRAME = "instructions"
_SAVING = {
    "remember": "`remember` keeps what will matter in later sessions: decisions, preferences, conventions, lessons.",
}
_FINDING = {
    "recall": "`recall` finds what is remembered: use it before you say that something is not known.",
    "memory_search": "`memory_search` finds lines of memory by words, with their file and line.",
    "memory_get": "`memory_get` shows lines of a memory file.",
    "session_search": "`session_search` finds what was said in earlier sessions.",
    "session_list": "`session_list` names the earlier sessions.",
    "session_history": "`session_history` shows what was said in one of them.",
}


@dataclass(frozen=True, kw_only=True)
class HumanText:
    """What a person wrote for the agent, and the file that it stands in."""

    source: str
    text: str


def system_prompt(*, base: str = "", human: Sequence[HumanText] = (), guidance: str = "", preamble: str = "") -> str:
    """Return the prompt of these parts, in this order, an empty line between them; empty for none.

    `human` is AGENTS.md first, then the rules.
    """
    written = [Quoted(text=each.text.strip("\n"), source=each.source, trust=Trust.USER) for each in human]
    shown = fence([each for each in written if each.text.strip()], name=_FRAME, note=_WRITTEN)
    parts = (base.strip("\n"), shown, guidance, preamble)
    return "\n\n".join(part for part in parts if part.strip())


def memory_guidance(tools: Collection[str]) -> str:
    """Return what the model is told about memory, naming only the tools that are among `tools`; empty for none."""
    lines = [line for name, line in {**_SAVING, **_FINDING}.items() if name in tools]
    if not lines:
        return ""
    return "\n".join(["There is a memory store that lasts beyond this session.", *(f"- {line}" for line in lines)])
