"""LangChain's messages: as `messages_to_dict` and `dumpd` write them, alone, in lists and in states."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exports import langchain_dict, langchain_dumped
from importing import json_lines, take_all
from ricordo.messages import Media, Thinking

Write = Callable[..., dict[str, Any]]
WAYS = pytest.mark.parametrize("write", [langchain_dict, langchain_dumped], ids=["messages_to_dict", "dumpd"])


def talk(write: Write) -> list[dict[str, Any]]:
    call = {"name": "search", "args": {"q": "lathe"}, "id": "c-1", "type": "tool_call"}
    repeated = {"type": "tool_use", "id": "c-1", "name": "search", "input": {"q": "lathe"}}
    return [
        write("system", "Be short."),
        write("user", "How old is the lathe?", id="h-1", name="Ada"),
        write("assistant", [{"type": "text", "text": "I look."}, repeated], tool_calls=[call], id="a-1"),
        write("tool", "From 1950.", tool_call_id="c-1", name="search"),
        write("assistant", "It is from 1950."),
    ]


@WAYS
def test_roles_texts_ids_names_and_calls_survive(tmp_path: Path, write: Write) -> None:
    taken = take_all(tmp_path / "chat.json", talk(write))
    messages = [each.message for each in taken.imported]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message.text for message in messages] == [
        "Be short.", "How old is the lathe?", "I look.", "", "It is from 1950.",
    ]  # fmt: skip
    assert (messages[1].id, messages[1].name) == ("h-1", "Ada")
    (call,) = messages[2].tool_calls
    assert (call.name, call.arguments, call.id) == ("search", '{"q":"lathe"}', "c-1")
    (result,) = messages[3].tool_results
    assert (result.call_id, result.name, result.text) == ("c-1", "search", "From 1950.")
    assert len(set(taken.sessions)) == 1
    assert taken.problems == []


@WAYS
def test_messages_are_read_from_lists_lines_and_states(tmp_path: Path, write: Write) -> None:
    whole = [each.message for each in take_all(tmp_path / "chat.json", talk(write)).imported]
    contents = {
        "lines.jsonl": json_lines(talk(write)),
        "lists.jsonl": json_lines([talk(write)]),
        "state.json": {"messages": talk(write), "thread_id": "t-1"},
        "states.jsonl": json_lines([{"messages": talk(write), "thread_id": "t-1"}]),
    }
    for name, content in contents.items():
        taken = take_all(tmp_path / name, content)
        assert [each.message for each in taken.imported] == whole, name
        assert (len(set(taken.sessions)), taken.problems) == (1, []), name
        assert ("t-1" in taken.sessions) == ("state" in name), name


@WAYS
def test_thoughts_pictures_failures_and_older_calls_survive(tmp_path: Path, write: Write) -> None:
    older = {"tool_calls": [{"id": "c-2", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]}
    picture = [{"type": "text", "text": "Look."}, {"type": "image", "base64": "aGk=", "mime_type": "image/gif"}]
    broken = [{"name": "g", "args": "{bad", "id": "c-3", "error": "no JSON"}]
    taken = take_all(
        tmp_path / "chat.json",
        [
            write("assistant", [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}]),
            write("user", picture),
            write("assistant", "", additional_kwargs=older),
            write("tool", "It broke.", tool_call_id="c-2", status="error"),
            write("assistant", "", invalid_tool_calls=broken),
            write("user", "Later.", response_metadata={"created_at": "2025-03-09T12:00:00Z"}),
        ],
    )
    messages = [each.message for each in taken.imported]
    assert messages[0].parts[0] == Thinking(text="Hm.")
    assert [part.uri for part in messages[1].parts if isinstance(part, Media)] == ["data:image/gif;base64,aGk="]
    assert messages[2].tool_calls[0].arguments == '{"a":1}'
    assert (messages[3].tool_results[0].is_error, messages[3].tool_results[0].text) == (True, "It broke.")
    assert messages[4].tool_calls[0].arguments == "{bad"
    assert messages[5].time is not None


@WAYS
def test_what_is_no_message_is_reported_and_hides_none(tmp_path: Path, write: Write) -> None:
    bad = [
        7,
        {"type": "human"},
        write("user", {"x": 1}),
        {"lc": 1, "id": ["RemoveMessage"], "kwargs": {"type": "remove"}},
    ]
    taken = take_all(tmp_path / "chat.jsonl", json_lines([write("user", "One."), *bad, write("user", "Two.")]))
    assert taken.texts == ["One.", "Two."]
    assert taken.lines_with_problems == [2, 3, 4, 5]
