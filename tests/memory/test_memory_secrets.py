"""A secret reaches no file, no index, no log, no event and no error, whatever carried it in."""

import base64
import json
import logging
import os
import random
import string
import zlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from places import place_of
from ricordo import Entry, Memory, Message
from ricordo.errors import RicordoError
from ricordo.events import Event
from ricordo.messages import Media, Text, Thinking, ToolCall, ToolResult, Unknown
from ricordo.workspace.entry import MAX_CONTENT_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-SECRET")]
Opened = Callable[..., AbstractAsyncContextManager[Memory]]

_chance = random.Random(11)
_LETTERS = string.ascii_letters + string.digits


def _any(count: int, alphabet: str = _LETTERS) -> str:
    return "".join(_chance.choices(alphabet, k=count))


def made_up_secrets() -> dict[str, tuple[str, str]]:
    """Return sentences with a secret that was never anybody's, and the part that must not be found again."""
    openai, anthropic = "sk-" + _any(48), "sk-ant-api03-" + _any(93) + "AA"
    github, aws = "ghp_" + _any(36), "AKIA" + _any(16, string.ascii_uppercase + "234567")
    slack = "xoxb-" + _any(12, string.digits) + "-" + _any(12, string.digits) + "-" + _any(24)
    password, bearer = _any(9) + "!7" + _any(5), _any(40)
    body = base64.b64encode(_chance.randbytes(600)).decode()
    pem_lines = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
    kind = "RSA PRIVATE " + "KEY"
    pem = f"-----BEGIN {kind}-----\n{pem_lines}\n-----END {kind}-----"
    return {
        "openai": (f"My key is {openai}, keep it.", openai),
        "anthropic": (f"Use {anthropic} for the model.", anthropic),
        "github": (f"We always push with the token {github}.", github),
        "aws": (f"The access key of the shop is {aws}.", aws),
        "slack": (f"The bot of the shop has the token {slack}.", slack),
        "password": (f"The password: {password}", password),
        "bearer": (f"Send the header Authorization: Bearer {bearer}", bearer),
        "url": (f"We use postgres://shop:{password}@db.example.com/orders for the orders.", password),
        "pem": (f"Our key is\n{pem}\nand that is all.", pem_lines.split("\n")[3]),
    }


SECRETS = made_up_secrets()


def conversation(text: str) -> list[Message]:
    arguments = json.dumps({"command": text, "env": {"NOTE": text}})
    return [
        Message(role="user", parts=(Text(text=text),), metadata={"note": text, "deep": [{"er": text}]}),
        Message(role="assistant", parts=(Thinking(text=text), ToolCall(id="c1", name="run", arguments=arguments))),
        Message(role="assistant", parts=(ToolCall(id="c2", name="run", arguments="{broken " + text),)),
        Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text=text),), is_error=True),)),
        Message(role="tool", parts=(ToolResult(call_id="c2", parts=(Unknown(kind="x", raw=arguments),)),)),
        Message(role="user", parts=(Media(media_type="image/png", uri="file:///a.png", description=text),)),
        Message(role="user", parts=(Text(text=f"I prefer tea. We decided this: {text} Remember that."),), name="Ana"),
    ]


async def live(opened: Opened, text: str, events: list[Event], errors: list[str]) -> None:
    async with opened(on_event=events.append) as memory:
        await memory.ingest(conversation(text), session="s1")
        await memory.remember(text)
        await memory.remember(f"{text}\n" + "long " * 1500 + text)
        await memory.remember("Plain.", tags=[text], kind=text[:150], reason=text)
        store = memory._workspace.store
        source = type(Entry(content="x").source)(session="s1", quote=text, origin=text)
        await store.save(Entry(content=text, source=source, extra=(("note", text),)))
        for act in (lambda: memory.recall(text), lambda: memory.search(text), lambda: memory.answer(text)):
            try:
                await act()
            except RicordoError as error:
                errors.append(str(error))
        for refused in (text + "x" * MAX_CONTENT_BYTES, ""):
            try:
                await memory.remember(refused, kind=text)
            except RicordoError as error:
                errors.append(str(error))
        entry = await memory.remember(f"Forget this: {text}")
        await memory.forget(entry.id, reason=text)
        await memory.undo()
        await memory.preamble()
        errors += [check.detail for check in await memory.doctor()]
        assert not [check.name for check in await memory.doctor() if not check.ok]


def below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def modes_below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


def holding(folder: Path, secret: str) -> list[str]:
    """Return the files below the folder that hold the secret, side files of the database and kept contents included."""
    wanted = [secret.encode(), json.dumps(secret)[1:-1].encode(), secret.lower().encode()]
    found = []
    for path in below(folder):
        data = path.read_bytes()
        data = zlib.decompress(data) if path.suffix == ".z" else data
        if secret in str(path) or any(form in data or form in data.lower() for form in wanted):
            found.append(str(path))
    return found


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize("kind", SECRETS)
async def test_a_secret_is_in_no_file_log_event_or_error(
    kind: str, opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text, secret = SECRETS[kind]
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    errors: list[str] = []
    await live(opened, text, events, errors)
    written = below(tmp_path)
    assert len(written) > 10
    assert any(b"[secret:" in path.read_bytes() for path in written if path.suffix == ".jsonl")
    assert holding(tmp_path, secret) == []
    assert secret not in caplog.text
    assert secret not in repr(events)
    assert secret not in "\n".join(errors)
    async with opened() as memory:
        shown = repr(await memory.entries()) + repr((await memory.session("s1")).messages) + await memory.preamble()
        assert secret not in shown
        assert secret not in repr(await memory.history())


async def test_a_secret_is_gone_while_the_index_is_still_open(opened: Opened, tmp_path: Path) -> None:
    text, secret = SECRETS["github"]
    async with opened() as memory:
        await memory.remember(text)
        await memory.ingest(conversation(text), session="s1")
        await memory.recall("push token")
        assert (place_of(memory.root) / "memory_index.db").exists()
        assert holding(tmp_path, secret) == []


async def test_the_guards_key_is_in_no_other_file(opened: Opened, root: Path, tmp_path: Path) -> None:
    async with opened() as memory:
        await memory.remember(SECRETS["openai"][0])
        await memory.forget((await memory.entries())[0].id)
    key = (root / "guard.key").read_bytes()
    assert len(key) == 64
    others = [path for path in below(root) if path.name != "guard.key"]
    assert not [path for path in others if key in path.read_bytes() or key.hex().encode() in path.read_bytes()]


@pytest.mark.req("GO-D13", "GO-PRIV")
@pytest.mark.parametrize("mask", [0, 0o777], ids=oct)
async def test_every_file_and_folder_of_a_root_is_private_whatever_the_umask(
    mask: int, opened: Opened, root: Path
) -> None:
    old = os.umask(mask)
    try:
        async with opened() as memory:
            await memory.remember("Private.")
            await memory.remember("Long. " * 2000)
            await memory.ingest(conversation("We deploy only from main."), session="s1")
            await memory.forget((await memory.entries())[0].id)
            modes = modes_below(root)
    finally:
        os.umask(old)
    assert any(path.name.endswith("-wal") for path in modes)
    assert any(path.name.endswith(".lock") for path in modes)
    wrong = {str(path): oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}
    assert wrong == {}
