"""Claude Agent SDK: a `SessionStore` whose sessions are transcripts of a memory (extra `claude-agent-sdk`).

The SDK mirrors each line of Claude Code's log to the store, and resumes from it. What somebody said is recorded as a
message, so it is searched, learned from and erased like every other; all other lines are kept as they are.

Invariant: `load` returns what was appended, except for secrets, which are never stored.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from string import ascii_letters, digits
from typing import Any
from uuid import uuid4

from ricordo.adapters.core import Bridge, framework_missing
from ricordo.agent.tools.memory import quote_hit
from ricordo.errors import InvalidMessage, MemoryClosed, SessionNotFound
from ricordo.guard import render_fence
from ricordo.messages import JsonValue, Message, with_mark
from ricordo.messages.formats import from_anthropic, to_anthropic
from ricordo.runtime import Settings
from ricordo.runtime.memory import Memory
from ricordo.scope import Scope

try:
    from claude_agent_sdk import HookMatcher, SessionStore
except ImportError as error:
    raise framework_missing("the Claude Agent SDK", "claude-agent-sdk") from error

__all__ = ["RicordoSessionStore"]


_LINE = "claude-line"
_MOST_MEMORIES = 5
_PLAIN = frozenset(ascii_letters + digits + "-")
_UNSAID = frozenset({"isMeta", "isCompactSummary"})
_Line = dict[str, Any]


class RicordoSessionStore(Bridge, SessionStore):
    """A store for `ClaudeAgentOptions(session_store=...)`; use it as `async with`."""

    def __init__(
        self, *, scope: Scope | None, memory: str | Path | Memory | None = None, settings: Settings | None = None
    ) -> None:
        """Use the memory of `scope` in the folder `memory`, or one that is open. Nothing is opened yet."""
        self._given = memory if isinstance(memory, Memory) else None
        self._root = None if isinstance(memory, Memory) else memory
        self._scope, self._settings = scope, settings
        self._memory: Memory | None = None
        self._given_to: dict[str, set[str]] = {}

    @property
    def memory(self) -> Memory:
        """The open memory. Raises: MemoryClosed outside of the block."""
        if self._memory is None:
            raise MemoryClosed("This store is closed: use it in its `async with` block.")
        return self._memory

    async def open(self) -> None:
        """Open the memory."""
        self._memory = self._given or await Memory.open(self._root, scope=self._scope, settings=self._settings)

    async def close(self) -> None:
        """Close the memory, unless it was given open; a second call does nothing."""
        memory, self._memory = self._memory, None
        if memory is not None and self._given is None:
            await memory.close()

    def hooks(self) -> "dict[Any, list[HookMatcher]]":
        """Return the hooks for `ClaudeAgentOptions(hooks=...)`, which add memory to each prompt of the user."""
        return {"UserPromptSubmit": [HookMatcher(hooks=[self._add_memory])]}

    async def _add_memory(self, event: Any, tool_use_id: str | None, context: Any) -> Any:
        """Return the preamble at the first prompt of a session, and what is remembered about the prompt, each once."""
        del tool_use_id, context
        given = self._given_to.setdefault(event["session_id"], set())
        texts = [] if given else [await self.memory.preamble()]
        hits = await self.memory.recall(event["prompt"], limit=_MOST_MEMORIES, said=False)
        new = [hit for hit in hits if hit.entry.id not in given and hit.entry.content not in "".join(texts)]
        given.update([event["session_id"], *(hit.entry.id for hit in hits)])
        now = datetime.now(UTC)
        texts.append(render_fence([quote_hit(hit, now) for hit in new]) if new else "")
        text = "\n\n".join(filter(None, texts))
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}} if text else {}

    async def append(self, key: Any, entries: Iterable[Any]) -> None:
        """Record lines and learn from them; a line with a `uuid` is recorded once. Raises: StorageError."""
        messages = [_read_line(line) for line in entries]
        if messages:
            await self.memory.ingest(messages, session=_name(key))

    async def load(self, key: Any) -> "list[Any] | None":
        """Return the lines of a session in their order; None if there is none."""
        try:
            session = await self.memory.session(_name(key))
        except SessionNotFound:
            return None
        return [_write_line(message) for message in session.messages]

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the main sessions of a project, each with the time of its last line in milliseconds."""
        return [
            {"session_id": _decode(parts[1]), "mtime": int(info.last.timestamp() * 1000)}
            for info in await self.memory.sessions()
            if (parts := info.session.split("."))[2:] == ["", ""] and parts[0] == _digest(project_key)
        ]

    async def list_subkeys(self, key: Any) -> list[str]:
        """Return the subpaths of a session, such as those of its sub-agents."""
        wanted = _name(key).split(".")[:2]
        names = [info.session.split(".") for info in await self.memory.sessions()]
        return [_decode(parts[2]) for parts in names if parts[:2] == wanted and parts[2]]

    async def delete(self, key: Any) -> None:
        """Delete a session with those below it, or only the one with a subpath; `undo` reverses it."""
        subpaths = [] if "subpath" in key else await self.list_subkeys(key)
        for each in (key, *({**key, "subpath": subpath} for subpath in subpaths)):
            with suppress(SessionNotFound):
                await self.memory.delete_session(_name(each), reason="deleted through the Claude Agent SDK")


def _name(key: Mapping[str, str]) -> str:
    """Return the id of a session for a key; none begins with another one, because a memory finds an id by its start."""
    return f"{_digest(key['project_key'])}.{_encode(key['session_id'])}.{_encode(key.get('subpath', ''))}."


def _digest(project_key: str) -> str:
    # a project is named by the path of its folder, which can be longer than an id
    return blake2b(project_key.encode(), digest_size=8).hexdigest()


def _encode(part: str) -> str:
    """Return a part without dots, reversibly: other characters than letters, digits and dashes become `_2e`."""
    return "".join(chr(each) if chr(each) in _PLAIN else f"_{each:02x}" for each in part.encode())


def _decode(part: str) -> str:
    plain, *encoded = part.split("_")
    return (plain.encode() + b"".join(bytes.fromhex(each[:2]) + each[2:].encode() for each in encoded)).decode()


def _read_line(line: Mapping[str, JsonValue]) -> Message:
    """Return a line as a message: with what was said in its parts, or whole in its metadata."""
    identity, time = line.get("uuid"), _read_time(line.get("timestamp"))
    said = _read_said(line)
    if said is None:
        said = with_mark(Message(role="system", metadata={_LINE: dict(line)}), "notice")
    return replace(said, id=identity if isinstance(identity, str) and identity else uuid4().hex, time=time)


def _read_said(line: Mapping[str, JsonValue]) -> Message | None:
    """Return what somebody said; None if nobody did, or if the line could not be written again as it was."""
    message = line.get("message")
    if line.get("type") not in {"user", "assistant"} or not isinstance(message, dict) or _UNSAID & line.keys():
        return None
    try:
        read = from_anthropic([message])
    except InvalidMessage:
        return None
    if len(read) != 1:
        return None
    rest = {**line, "message": {name: value for name, value in message.items() if name not in {"role", "content"}}}
    said = replace(read[0], metadata={**read[0].metadata, _LINE: rest})
    return said if _write_line(said) == line else None


def _write_line(message: Message) -> _Line:
    line = message.metadata.get(_LINE)
    if not isinstance(line, dict):
        return {}
    rest = line.get("message")
    if not message.parts or not isinstance(rest, dict):
        return line
    (said,) = to_anthropic([message]).messages
    return {**line, "message": {**rest, **said}}


def _read_time(value: JsonValue) -> datetime | None:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time if time is None or time.tzinfo is not None else None
