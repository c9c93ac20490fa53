"""The whole offline pipeline on labelled conversations, with tools, uploads, recalled memory and idle words in them."""

import pytest

from pipeline_chats import Chat, chats, outcome, scores

FLOOR = 0.93


def test_the_conversations_are_many_and_half_of_them_hold_nothing_to_note() -> None:
    said = sum(chat.said for chat in chats())
    bare = sum(chat.said for chat in chats() if not chat.expected)
    assert said >= 150
    assert bare >= said / 2


def test_the_pipeline_finds_what_is_worth_noting_and_little_else() -> None:
    assert min(scores()) >= FLOOR, scores()


def _holds(chat: Chat, *marks: str) -> bool:
    texts = " ".join(
        message.text + "".join(result.text for result in message.tool_results) for message in chat.messages
    )
    return any(mark in texts for mark in marks)


@pytest.mark.req("DF-C2", "DF-C6", "DF-PROC")
@pytest.mark.parametrize(
    "chat",
    [
        chat
        for chat in chats()
        if not chat.expected and _holds(chat, "<memory", "<uploaded_files", "admin key", "hurry")
    ],
    ids=lambda chat: chat.messages[-1].text[:40],
)
def test_nothing_is_learned_from_memory_uploads_tools_and_reminders(chat: Chat) -> None:
    assert outcome(chat).extra == ()
