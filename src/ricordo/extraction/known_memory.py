"""The existing memory: read for the request, and compared with findings so that they are not stored again.

A finding is a repetition if its words occur in memory, in recalled text, or in a text saved by a tool call. An
assistant's statement that follows the same tool output counts as external.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import cached_property

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageError
from ricordo.extraction.request import KnownMemory
from ricordo.guard import Trust
from ricordo.language import split_words, strip_accents
from ricordo.language.packs import pack_words
from ricordo.language.words import SourceText
from ricordo.messages import Message
from ricordo.messages.json_text import loads
from ricordo.storage import FileStore
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_ledger, ledger_path
from ricordo.workspace.redaction import hide_quarantined

__all__ = [
    "SAVING_TOOL",
    "RecalledTexts",
    "ToolOutput",
    "collect_saved_words",
    "is_from_tools",
    "load_known_memory",
    "load_known_words",
]


_BYTES_PER_TOKEN = 8
_EXTRACTED_FIELD = b"[by:: flush]"


async def load_known_memory(files: FileStore, today: date, *, reference: str, max_tokens: int) -> KnownMemory:
    """Return MEMORY.md and today's ledger; with the `reference` "all" also the older ledgers.

    Older ledgers are read newest first, up to the size that could fit in `max_tokens` tokens.
    """
    ledgers = [(ledger_path(today), await _read_text(files, ledger_path(today)))]
    if reference == "all":
        remaining_bytes = max_tokens * _BYTES_PER_TOKEN
        older_ledgers = [
            info for info in await files.list(LEDGERS) if is_ledger(info.path) and info.path != ledgers[0][0]
        ]
        for info in sorted(older_ledgers, key=lambda each: each.path.rpartition("/")[2], reverse=True):
            remaining_bytes -= info.size
            if remaining_bytes < 0:
                break
            ledgers.append((info.path, await _read_text(files, info.path)))
    return KnownMemory(memory=await _read_text(files, MEMORY_PATH), ledgers=tuple(ledgers))


async def load_known_words(files: FileStore, today: date) -> frozenset[tuple[str, ...]]:
    """Return the words of each entry in MEMORY.md, and of each entry saved by a person or a tool today or yesterday.

    Extracted entries are not included: consolidation evaluates their repetitions.
    """
    known_words: set[tuple[str, ...]] = set()
    for path in (MEMORY_PATH, ledger_path(today), ledger_path(today - timedelta(days=1))):
        with suppress(FileMissing, StorageError):
            data = (await files.read(path)).data
            known_words |= await run_sync(_collect_words, data, path)
    return frozenset(known_words - {()})


def _collect_words(data: bytes, path: str) -> set[tuple[str, ...]]:
    """Return the words of each entry in a document; of a ledger, only entries that no flush wrote."""
    if path == MEMORY_PATH:
        return {split_words(located.entry.content) for located in parse_entries(data, path)}
    # Flushes write most of a long ledger, so it is not parsed if it has no other entries.
    if all(_EXTRACTED_FIELD in line for line in data.split(b"\n") if line.startswith(b"- ")):
        return set()
    saved = parse_entries(data, path, only=lambda bullet: _EXTRACTED_FIELD not in bullet)
    # what a person says is new, even if a tool said it before
    return {
        split_words(each.entry.content) for each in saved if each.entry.by != "flush" and not each.entry.is_external
    }


async def _read_text(files: FileStore, path: str) -> str:
    try:
        data = (await files.read(path)).data
        return (await run_sync(hide_quarantined, data)).decode("utf-8", "replace")
    except (FileMissing, StorageError):
        return ""


_KEY_LETTERS = 6
_MIN_KEYS = 2


class RecalledTexts:
    """Recalled texts, prepared for the detection of repetitions."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Compare with `texts`."""
        self._texts = texts

    def covers(self, statement: str) -> bool:
        """Return whether `statement` says nothing beyond one of the texts."""
        keys = _comparison_keys(statement)
        return len(keys) >= _MIN_KEYS and any(
            keys <= other and not (other - keys) & pack_words("denial_word") for other in self._keys
        )

    @cached_property
    def _keys(self) -> list[frozenset[str]]:
        return [_comparison_keys(text) for text in self._texts]


def _comparison_keys(text: str) -> frozenset[str]:
    return frozenset(
        strip_accents(word)[:_KEY_LETTERS] for word in split_words(text) if word not in pack_words("person_word")
    )


SAVING_TOOL = "remember"
"""The name of the tool that saves the model's `content` argument."""


_MIN_VERBATIM = 8
"""The number of characters from which a text that stands in another one is no coincidence."""
_MEMORY_TOOLS = frozenset({"recall", "memory_search", "memory_get"})
_EXTERNAL_ITEM = f'trust="{Trust.EXTERNAL.value}"'


def collect_saved_words(messages: Sequence[Message]) -> frozenset[tuple[str, ...]]:
    """Return the words of each text saved by a successful call of the saving tool in `messages`."""
    failed = {result.call_id for message in messages for result in message.tool_results if result.is_error}
    return frozenset(split_words(content) for call, content in _iter_saved_texts(messages) if call not in failed)


def _iter_saved_texts(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    for call in (call for message in messages for call in message.tool_calls if call.name == SAVING_TOOL):
        try:
            arguments = loads(call.arguments)
        except InvalidMessage:
            continue
        if isinstance(arguments, dict) and isinstance(content := arguments.get("content"), str):
            yield call.id, content


def is_from_tools(content: str, messages: Sequence[Message]) -> bool:
    """Return whether a text repeats what a tool printed in `messages`, and no user said it there."""
    return ToolOutput(messages).covers(content, before=len(messages))


class ToolOutput:
    """What tools printed in some messages, prepared to tell which statements of an assistant only repeat it."""

    def __init__(self, messages: Sequence[Message]) -> None:
        """Take the messages in their order."""
        self._messages = messages
        self._positions: dict[str, int] = {}
        for index, message in enumerate(messages):
            self._positions.setdefault(message.id, index)
        self._sources: dict[int, tuple[list[_Source], list[_Source]]] = {}

    def is_repeated(self, message_id: str, quote: str) -> bool:
        """Return whether the message is an assistant's, and `quote` repeats what a tool printed before it.

        It does not if a user said it before.
        """
        index = self._positions.get(message_id)
        return index is not None and self._messages[index].role == "assistant" and self.covers(quote, before=index)

    def covers(self, content: str, *, before: int) -> bool:
        """Return whether a text repeats what a tool printed before this position, and no user said it there."""
        statement = _Source(content)
        said = (source for index in range(before) for source in self._prepare(index)[0])
        if any(source.is_repeated_by(statement) for source in said):
            return False
        printed = (source for index in range(before) for source in self._prepare(index)[1])
        return any(source.is_repeated_by(statement) for source in printed)

    def _prepare(self, index: int) -> "tuple[list[_Source], list[_Source]]":
        """Return what a user said in a message, and what tools printed in it."""
        if index not in self._sources:
            message = self._messages[index]
            said = [_Source(message.text)] if message.role == "user" else []
            # what memory said is trusted as it was, so saving it again makes it no better
            printed = [
                _Source(result.text)
                for result in message.tool_results
                if result.name not in _MEMORY_TOOLS or _EXTERNAL_ITEM in result.text
            ]
            self._sources[index] = said, printed
        return self._sources[index]


class _Source:
    """A text that others may repeat; what is needed for a comparison is computed once, when it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._sentences = SourceText(text)

    def is_repeated_by(self, statement: "_Source") -> bool:
        """Return whether a text has most of its words from a sentence of this one, or stands here as it is."""
        is_verbatim = len(statement._joined) >= _MIN_VERBATIM and statement._joined in self._joined
        return is_verbatim or self._sentences.is_repeated_by(statement._sentences)

    @cached_property
    def _joined(self) -> str:
        return " ".join(self._text.split())
