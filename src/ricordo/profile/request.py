"""The request for an update, as messages, within its token cap. Pure.

What is static comes first. Of the profile half of the room is shown at most: the summaries, then the facts by rank. The
conversation has the rest; as many messages as fit, from the first on, and one at least, which is cut further if needed.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from ricordo.guard.cut import cut
from ricordo.guard.trust import Trust
from ricordo.messages.types import JsonValue, Message, Text
from ricordo.profile.config import ProfileConfig
from ricordo.profile.form import UPDATE_SCHEMA
from ricordo.profile.merging import find_merge_groups
from ricordo.profile.prompts import (
    RETRY_INSTRUCTION,
    PROFILE_TASK,
    UpdatePrompt,
    format_conversation,
    render_hints,
    quote_block,
)
from ricordo.profile.staleness import select_for_review
from ricordo.profile.trimming import last_confirmed, fact_rank
from ricordo.tokens import cut_text, estimate_text
from ricordo.workspace.profile import HISTORY_SUMMARIES, USER_SUMMARIES, Fact, Profile

__all__ = ["UpdateRequest", "ProfileSection", "build_update_request", "build_profile_section"]

_SCHEMA_TOKENS = estimate_text(json.dumps(UPDATE_SCHEMA))
_FRAME_TOKENS = 60
_MIN_CONVERSATION_TOKENS = 300
_REVIEW_INSTRUCTIONS = """
Review. The user confirmed these facts of the profile long ago; the number is the days since. Name in
`staleFactsToRemove` those that the conversation, or common sense, shows to be over, and in `staleFactsToExtend` those
that hold on, with `extend_by_days`, or null for as long as they usually do. What you name in neither stays.
"""
_MERGE_INSTRUCTIONS = """
Merging. These groups hold many facts of one category. Where two to {most} of one group say parts of one thing, name
their ids in `factsToConsolidate` with the one fact that stands for all, and nothing in it that they don't say.
"""


@dataclass(frozen=True, kw_only=True)
class ProfileSection:
    """What to ask a model: the `instructions`, the `reference` of what is known, and the JSON `schema` of the answer.

    `shown` are the ids of the old facts that it is asked to review.
    """

    instructions: str
    reference: str
    schema: dict[str, JsonValue]
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UpdateRequest:
    """A request, the messages of the conversation that it shows, and the ids of the facts to review."""

    request: tuple[Message, ...]
    messages: tuple[Message, ...]
    shown: tuple[str, ...]


def build_profile_section(
    profile: Profile, signals: Collection[str], *, prompt: UpdatePrompt, now: datetime, config: ProfileConfig
) -> ProfileSection:
    """Return the section of a request that brings its own conversation."""
    old = select_for_review(profile, now=now, config=config)
    task = prompt.instructions or PROFILE_TASK
    asked = "".join(filter(None, ["\n", render_hints(signals), _render_review(profile, old, now, config)]))
    return ProfileSection(
        instructions=f"{task}{asked}".rstrip() + "\n",
        reference=_render_profile(profile, config.max_prompt_tokens // 3, now, config),
        schema=dict(UPDATE_SCHEMA),
        shown=tuple(fact.id for fact in old),
    )


def build_update_request(
    profile: Profile,
    messages: Sequence[Message],
    signals: Collection[str],
    *,
    prompt: UpdatePrompt,
    now: datetime,
    config: ProfileConfig,
) -> UpdateRequest:
    """Return the request for as many of `messages`, from the first on, as its token cap allows."""
    old = select_for_review(profile, now=now, config=config)
    hints = render_hints(signals)
    review = _render_review(profile, old, now, config)
    frame = (
        prompt.instructions + prompt.fill(profile="", conversation="", hints=hints, review=review) + RETRY_INSTRUCTION
    )
    room = max(
        config.max_prompt_tokens - _SCHEMA_TOKENS - estimate_text(frame) - 2 * _FRAME_TOKENS,
        2 * _MIN_CONVERSATION_TOKENS,
    )
    reference = quote_block(
        _render_profile(profile, room // 2, now, config), name="profile", source="the profile", trust=Trust.AGENT
    )
    shown, conversation = _select_messages(messages, room - estimate_text(reference), config)
    block = quote_block(conversation, name="conversation", source="the conversation", trust=Trust.USER)
    filled = prompt.fill(profile=reference, conversation=block, hints=hints, review=review)
    request = [Message(role="user", parts=(Text(text=filled),))]
    if prompt.instructions:
        request.insert(0, Message(role="system", parts=(Text(text=prompt.instructions),)))
    return UpdateRequest(request=tuple(request), messages=shown, shown=tuple(fact.id for fact in old))


def _select_messages(messages: Sequence[Message], room: int, config: ProfileConfig) -> tuple[tuple[Message, ...], str]:
    """Return the messages that fit, and their lines."""
    room = max(room, _MIN_CONVERSATION_TOKENS)
    lines: list[str] = []
    taken = 0
    for message in messages:
        line = format_conversation([message], limit=config.max_message_characters, truncation=config.truncation)
        size = estimate_text(line) + 2
        if lines and size > room:
            break
        lines.append(line if size <= room else cut(line, len(cut_text(line, room - 2))))
        room -= size
        taken += 1
    return tuple(messages[:taken]), "\n".join(lines)


def _render_profile(profile: Profile, room: int, now: datetime, config: ProfileConfig) -> str:
    """Return the profile as JSON, one fact a line, within `room` tokens: those of the highest rank, in their order."""
    levels: dict[str, JsonValue] = {
        level: {name: profile.summaries[name].summary for name in names if name in profile.summaries}
        for level, names in (("user", USER_SUMMARIES), ("history", HISTORY_SUMMARIES))
    }
    head = json.dumps(levels, ensure_ascii=False)
    if estimate_text(head) > room:
        head = cut(head, len(cut_text(head, room)))
    left = room - estimate_text(head) - 20
    rows = {fact.id: json.dumps(_fact_row(fact), ensure_ascii=False) for fact in profile.facts}
    ranked = sorted(
        profile.facts, key=lambda fact: (fact.is_protected, fact_rank(fact, now=now, config=config)), reverse=True
    )
    chosen: set[str] = set()
    for fact in ranked:
        size = estimate_text(rows[fact.id]) + 1
        if size <= left:
            chosen.add(fact.id)
            left -= size
    lines = [rows[fact.id] for fact in profile.facts if fact.id in chosen]
    return "\n".join([head, "facts:", *lines]) if lines else head


def _fact_row(fact: Fact) -> JsonValue:
    row: dict[str, JsonValue] = {"id": fact.id, "content": fact.content, "category": fact.category}
    if fact.source_error:
        row["sourceError"] = fact.source_error
    if fact.is_protected:
        row["manual"] = True
    return row


def _render_review(profile: Profile, old: Sequence[Fact], now: datetime, config: ProfileConfig) -> str:
    """Return what is asked beside the update: the review of old facts, and the merging of many."""
    parts = []
    if old:
        lines = "".join(f"- {_to_safe_id(fact.id)}: {_age_in_days(fact, now)}\n" for fact in old)
        parts.append(_REVIEW_INSTRUCTIONS + lines)
    groups = find_merge_groups(profile.facts, config)
    if groups:
        lines = "".join(f"- {', '.join(_to_safe_id(fact.id) for fact in group)}\n" for group in groups)
        parts.append(_MERGE_INSTRUCTIONS.format(most=config.consolidation_max_sources) + lines)
    return "".join(parts)


def _to_safe_id(fact_id: str) -> str:
    """Return an id as it may stand outside of a block: whoever wrote the document may have written anything there."""
    return "".join(mark for mark in fact_id if mark.isalnum() or mark in "_-")[:64]


def _age_in_days(fact: Fact, now: datetime) -> int:
    last = last_confirmed(fact)
    return max((now - last).days, 0) if last else 0
