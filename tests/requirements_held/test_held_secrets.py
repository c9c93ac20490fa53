"""A secret that comes in through any place a caller can fill reaches no byte below the root, no log, event or error."""

import json
import logging
import random
import string
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from ricordo import Entry, Memory, Message, Scope
from ricordo.errors import RicordoError
from ricordo.messages import JsonValue, Media, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ricordo.workspace import Source

if TYPE_CHECKING:
    from ricordo.events import Event

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-SECRET")]

SHOP = Scope(user="me", project="shop")
_chance = random.Random(23)
_LETTERS = string.ascii_letters + string.digits


def _any(count: int, alphabet: str = _LETTERS) -> str:
    return "".join(_chance.choices(alphabet, k=count))


SECRETS = {
    "github": "ghp_" + _any(36),
    "openai": "sk-" + "proj-" + _any(64),
    "aws": "AKIA" + _any(16, string.ascii_uppercase + "234567"),
    "slack": "xoxb-" + _any(12, string.digits) + "-" + _any(12, string.digits) + "-" + _any(24),
}

Act = Callable[[Memory, str], Awaitable[object]]


def told(*parts: Part, **more: Any) -> Act:
    """Return an act that takes a message in; in its texts `@` stands for the secret."""

    async def act(memory: Memory, secret: str) -> None:
        filled: Message = _put(Message(role="user", parts=parts, **more), secret)
        await memory.ingest([Message(role="user", parts=(Text(text="Hello."),)), filled], session="s1")

    return act


def _put(value: Any, secret: str) -> Any:
    """Return the value with the secret wherever `@` stands, in whichever field."""
    if isinstance(value, str):
        return value.replace("@", secret)
    if isinstance(value, tuple):
        return tuple(_put(each, secret) for each in value)
    if isinstance(value, list):
        return [_put(each, secret) for each in value]
    if isinstance(value, dict):
        return {_put(key, secret): _put(each, secret) for key, each in value.items()}
    if isinstance(value, Message | Text | Thinking | Media | Unknown | ToolCall | ToolResult):
        return type(value)(**{name: _put(each, secret) for name, each in vars(value).items()})
    return value


def remembered(content: str = "Plain words.", **more: Any) -> Act:
    async def act(memory: Memory, secret: str) -> None:
        fields = {name: _put(value, secret) for name, value in more.items()}
        await memory.remember(content.replace("@", secret), **fields)

    return act


def kept(entry: Entry) -> Act:
    """Return an act that saves an entry through the store, with what `remember` has no argument for."""

    async def act(memory: Memory, secret: str) -> None:
        source = Source(**{name: _put(value, secret) for name, value in vars(entry.source).items()})
        fields = {name: _put(value, secret) for name, value in vars(entry).items()} | {"source": source}
        await memory._workspace.store.save(Entry(**fields))

    return act


async def forgotten_for_a_reason(memory: Memory, secret: str) -> None:
    entry = await memory.remember("Forget this.")
    await memory.forget(entry.id, reason=f"It holds {secret}.")
    await memory.undo()


async def asked(memory: Memory, secret: str) -> None:
    await memory.remember("We deploy only from main.")
    await memory.recall(secret)
    await memory.search(f"deploy {secret}")
    await memory.answer(f"What is {secret}?")
    await memory.recall("deploy", kinds=[secret], tags=[secret])


async def named_as_an_entry(memory: Memory, secret: str) -> None:
    await memory.entry(secret)


async def forgotten_by_its_name(memory: Memory, secret: str) -> None:
    await memory.forget(secret)


async def undone_by_its_name(memory: Memory, secret: str) -> None:
    await memory.undo(secret)


async def named_as_a_session(memory: Memory, secret: str) -> None:
    await memory.session(secret)


async def ingested_as_a_session(memory: Memory, secret: str) -> None:
    await memory.ingest([Message(role="user", parts=(Text(text="We deploy only from main."),))], session=secret)


async def ingested_as_a_strange_session(memory: Memory, secret: str) -> None:
    await memory.ingest([Message(role="user", parts=(Text(text="Hello."),))], session=f"a/{secret}")


DEEP: dict[str, JsonValue] = {"@": "x", "note": "@", "deep": [{"@": ["@"]}]}
PLACES: dict[str, Act] = {
    "text": told(Text(text="We decided to use @ in the shop.")),
    "thinking signature": told(Thinking(text="Hm.", signature="@")),
    "thinking": told(Thinking(text="Use @.")),
    "tool call id": told(ToolCall(id="call-@", name="run")),
    "tool call name": told(ToolCall(id="c1", name="run @")),
    "arguments": told(ToolCall(id="c1", name="run", arguments=json.dumps({"@": ["@"]}))),
    "broken arguments": told(ToolCall(id="c1", name="run", arguments='{"key": @')),
    "tool result id": told(ToolResult(call_id="call-@", parts=(Text(text="Done."),))),
    "tool result name": told(ToolResult(call_id="c1", name="run @", parts=(Text(text="Done."),))),
    "tool result text": told(ToolResult(call_id="c1", parts=(Text(text="Done with @."),))),
    "tool result media": told(
        ToolResult(call_id="c1", parts=(Media(media_type="image/png", uri="file:///@.png", name="@", description="@"),))
    ),
    "tool result unknown": told(ToolResult(call_id="c1", parts=(Unknown(kind="x", raw='{"a": "@"}'),))),
    "media name": told(Media(media_type="image/png", uri="file:///a.png", name="shot of @")),
    "media description": told(Media(media_type="image/png", uri="file:///a.png", description="It shows @.")),
    "media uri": told(Media(media_type="image/png", uri="https://example.com/a.png?token=@")),
    "media data uri": told(Media(media_type="text/plain", uri="data:text/plain,@")),
    "media type": told(Media(media_type="image/@", uri="file:///a.png")),
    "unknown raw": told(Unknown(kind="x", raw='{"@": "@"}')),
    "unknown text": told(Unknown(kind="x", raw="not JSON: @")),
    "unknown kind": told(Unknown(kind="kind-@", raw="{}")),
    "message name": told(Text(text="I prefer tea over coffee."), name="Ana @"),
    "message name alone": told(Text(text="I prefer tea over coffee."), name="@"),
    "message id": told(Text(text="I prefer tea over coffee."), id="id-@"),
    "message parent": told(Text(text="I prefer tea over coffee."), parent="id-@"),
    "metadata": told(Text(text="I prefer tea over coffee."), metadata=DEEP),
    "content": remembered("We push with @ always."),
    "long content": remembered("We push with @ always. " + "long " * 1500 + "@"),
    "kind": remembered(kind="kind @"),
    "tags": remembered(tags=["@", "tag @"]),
    "reason": remembered(scope=Scope(user="me"), reason="because of @"),
    "extra field": kept(Entry(content="Plain.", extra=(("note", "@"),))),
    "name of an extra field": kept(Entry(content="Plain.", extra=(("key-@", "value"),))),
    "session of a source": kept(Entry(content="Plain.", source=Source(session="@"))),
    "messages of a source": kept(Entry(content="Plain.", source=Source(session="s1", messages=("@",)))),
    "quote of a source": kept(Entry(content="Plain.", source=Source(session="s1", quote="q @"))),
    "origin of a source": kept(Entry(content="Plain.", source=Source(session="s1", origin="o @"))),
    "supersedes": kept(Entry(content="Plain.", supersedes="@")),
    "entry id": kept(Entry(content="Plain.", id="@")),
    "reason of forgetting": forgotten_for_a_reason,
    "question": asked,
    "id of an entry": named_as_an_entry,
    "id of an entry to forget": forgotten_by_its_name,
    "id of a change": undone_by_its_name,
    "id of a session": named_as_a_session,
    "new session": ingested_as_a_session,
    "strange session": ingested_as_a_strange_session,
}

ASKED_BY_NAME = {"id of an entry", "id of an entry to forget", "id of a change", "id of a session"}


def holding(folder: Path, secret: str) -> list[str]:
    """Return the files below a folder that hold the secret in their name or their bytes, compressed ones opened."""
    wanted = {secret.encode(), secret.lower().encode()}
    found = []
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        data = zlib.decompress(data) if path.suffix == ".z" else data
        everything = str(path.relative_to(folder)).encode() + b"\0" + data
        if any(form in everything or form in everything.lower() for form in wanted):
            found.append(str(path.relative_to(folder)))
    return found


def kinds_tried_in(where: str) -> list[str]:
    """Return two kinds of secrets; over the places each kind has its turn, since all go through one redactor."""
    kinds, at = list(SECRETS), list(PLACES).index(where)
    return [kinds[(at + step) % len(kinds)] for step in range(2)]


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize("where", PLACES)
async def test_a_secret_is_below_no_root_and_in_no_log_event_or_error(
    where: str, tmp_path: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    for kind in kinds_tried_in(where):
        secret = SECRETS[kind]
        errors: list[str] = []
        async with Memory.open(tmp_path / kind, scope=SHOP, on_event=events.append) as memory:
            try:
                await PLACES[where](memory, secret)
            except RicordoError as error:
                errors += [str(error), repr(error)]
            await memory.recall("shop")
            await memory.preamble()
            assert list((tmp_path / kind).glob("memory_index.db*"))
            for folder in (tmp_path, home):
                assert await anyio.to_thread.run_sync(holding, folder, secret) == [], kind
            errors += [check.detail for check in await memory.doctor()]
        for folder in (tmp_path, home):
            assert await anyio.to_thread.run_sync(holding, folder, secret) == [], kind
        assert secret not in caplog.text
        assert secret not in repr(events)
        # what was asked for by name is said back to who asked
        assert where in ASKED_BY_NAME or [error for error in errors if secret in error] == []
        async with Memory.open(tmp_path / kind, scope=SHOP) as memory:
            shown = [repr(await memory.entries()), repr(await memory.history()), await memory.preamble()]
            shown += [repr(await memory.session(info.session)) for info in await memory.sessions()]
            assert secret not in "".join(shown)


async def test_what_is_looked_for_would_be_found(tmp_path: Path) -> None:
    for number, secret in enumerate(SECRETS.values()):
        (tmp_path / f"{number}.z").write_bytes(zlib.compress(b"before " + secret.encode()))
        (tmp_path / f"{secret}.txt").write_text("")
        assert sorted(holding(tmp_path, secret)) == sorted([f"{number}.z", f"{secret}.txt"])
