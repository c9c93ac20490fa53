"""Creating, editing and reading documents of the workspace for file tools, and the bounds of MEMORY.md.

An operation refuses ambiguous input instead of guessing. Every prompt begins with MEMORY.md, so no write here may make
it larger than its bounds; consolidation keeps it within them.
"""

from typing import Literal, TypeAlias

from ricordo.errors import AlreadyExists, EditRefused, IndexTooLarge, InvalidInput, PathRefused, VersionConflict
from ricordo.guard.redact import Redactor
from ricordo.lazy import dataclass
from ricordo.messages.tokens import estimate_text
from ricordo.storage import ABSENT, FileStore
from ricordo.storage.contract import safe_path
from ricordo.workspace.entry_codec import collect_fields, inline_fields, render_prompt_lines, without_field_comment
from ricordo.workspace.history.change_sets import ChangeSets, Edit
from ricordo.workspace.layout import MEMORY_PATH, WORKSPACE, is_memory
from ricordo.workspace.markdown import decode_lines, to_utf8
from ricordo.workspace.redaction import hide_quarantined

__all__ = [
    "BoundName",
    "DocumentLines",
    "IndexBounds",
    "TextReplacement",
    "create_document",
    "edit_document",
    "read_memory_lines",
]


BoundName: TypeAlias = Literal["lines", "bytes", "tokens"]
"""What a bound of MEMORY.md counts."""
_BOUND_NAMES: tuple[BoundName, ...] = ("lines", "bytes", "tokens")


@dataclass(frozen=True, kw_only=True)
class IndexBounds:
    """The maximum size of MEMORY.md, without the fields of entries that only say where they come from.

    Tokens are counted in the prompt, which shows no fields at all.

    The defaults for lines and bytes are those of Claude Code for a file of this name.
    """

    max_lines: int = 200
    max_bytes: int = 25_000
    max_tokens: int = 4_000

    def find_exceeded(self, document: bytes) -> BoundName | None:
        """Return the first bound that a document exceeds, in the order lines, bytes, tokens; None if none."""
        return next((cap for cap in _BOUND_NAMES if self.measure(document, cap) > self.limit(cap)), None)

    def measure(self, document: bytes, cap: BoundName) -> int:
        """Return the size of a document in the unit of one bound."""
        if cap == "tokens":
            return estimate_text("\n".join(render_prompt_lines(document)))
        if cap == "bytes":
            return len(without_field_comment(collect_fields(document)))
        text = without_field_comment(document)
        return text.count(b"\n") + (not text.endswith(b"\n"))

    def limit(self, cap: BoundName) -> int:
        """Return the value of one bound."""
        return {"lines": self.max_lines, "bytes": self.max_bytes, "tokens": self.max_tokens}[cap]

    def find_growth(self, before: bytes, after: bytes) -> BoundName | None:
        """Return the first bound that `after` exceeds, and exceeds further than `before`; None if none."""
        over = (cap for cap in _BOUND_NAMES if self.measure(after, cap) > self.limit(cap))
        return next((cap for cap in over if self.measure(after, cap) > self.measure(before, cap)), None)

    def check(self, before: bytes, after: bytes, *, advice: str = "") -> None:
        """Refuse a write that makes MEMORY.md larger than its bounds; shortening a file that is too large is allowed.

        Raises: IndexTooLarge, which names the bound and says what to do; `advice` replaces the general text.
        """
        cap = self.find_growth(before, after)
        if cap is not None:
            raise IndexTooLarge(
                f"MEMORY.md would have {self.measure(after, cap):,} {cap}, and may have {self.limit(cap):,}, as every"
                f" prompt begins with it: nothing was written. {advice or _DEFAULT_ADVICE}",
                cap=cap,
            )


_DEFAULT_ADVICE = (
    "Put what is longer into a topic such as memory/topics/NAME.md, and let MEMORY.md name that in a line."
)


@dataclass(frozen=True, kw_only=True)
class DocumentLines:
    """Lines `start` to `end` of a document, 1-based and inclusive, and the total number of its lines."""

    path: str
    start: int
    end: int
    total: int
    text: str


@dataclass(frozen=True, kw_only=True)
class TextReplacement:
    """An edit that replaces `old`, which occurs once, with `new`; with `every`, all its occurrences."""

    old: str
    new: str
    every: bool = False

    def apply_to(self, data: bytes, path: str) -> tuple[bytes, int]:
        """Return the edited document and the number of replacements. Raises `EditRefused`."""
        old_bytes = self.old.encode("utf-8", "surrogatepass")
        count = data.count(old_bytes) if old_bytes else 0
        if count == 0:
            raise EditRefused(f"The text to replace does not occur in {path}.")
        if count > 1 and not self.every:
            raise EditRefused(f"The text to replace occurs {count} times in {path}: quote more of it, or ask for all.")
        return data.replace(old_bytes, self.new.encode("utf-8", "surrogatepass")), count


async def create_document(
    files: FileStore, changes: ChangeSets, path: str, content: str, *, redactor: Redactor, who: str, why: str = ""
) -> str:
    """Create a file of the workspace durably, with secrets redacted, and return its path below the workspace.

    It is one change set by `who`. Raises: AlreadyExists; IndexTooLarge for a MEMORY.md.
    """
    relative_path = safe_path(path)
    target = f"{WORKSPACE}/{relative_path}"
    data = redactor.clean(content).encode("utf-8", "surrogatepass")
    if target == MEMORY_PATH:
        IndexBounds().check(b"", data)
    already_exists = AlreadyExists(f"{path} exists already and was left unchanged.")
    if await files.info(target) is not None:
        raise already_exists
    try:
        edit = Edit(path=target, expected_hash=ABSENT, data=data)
        await changes.apply([edit], act="create", who=who, why=redactor.clean(why))
    except VersionConflict as error:
        raise already_exists from error
    return relative_path


async def edit_document(
    files: FileStore,
    changes: ChangeSets,
    path: str,
    replacement: TextReplacement,
    *,
    redactor: Redactor,
    who: str,
    why: str = "",
) -> int:
    """Replace a text in a file of the workspace and return the number of replacements.

    It is one change set by `who`; secrets in the whole document are redacted. Raises: EditRefused if the text is empty,
    missing or not unique; FileMissing; VersionConflict if others keep changing the file.
    """
    target = f"{WORKSPACE}/{safe_path(path)}"
    counts: list[int] = []

    async def plan() -> list[Edit]:
        stored = await files.read(target)
        data, count = replacement.apply_to(stored.data, path)
        counts.append(count)
        redacted = _redact_document(data, redactor)
        if target == MEMORY_PATH:
            IndexBounds().check(stored.data, redacted)
        return [Edit(path=target, expected_hash=stored.version, data=redacted)]

    await changes.rebase(plan, act="edit", who=who, why=redactor.clean(why))
    return counts[-1]


def _redact_document(data: bytes, redactor: Redactor) -> bytes:
    """Redact secrets in a document; bytes that are not UTF-8 stay unchanged."""
    text = data.decode("utf-8", "surrogateescape")
    redacted = redactor.clean(text)
    return data if redacted == text else redacted.encode("utf-8", "surrogateescape")


async def read_memory_lines(
    files: FileStore, path: str, start: int = 1, end: int | None = None, *, redactor: Redactor
) -> DocumentLines:
    """Return lines of a memory document: curated memory, a ledger, a topic, an archive or a long entry.

    A secret that a person wrote into it is replaced by a mark of `redactor`. Each entry has all its fields.

    `end` beyond the document means its last line. Raises: PathRefused for any other file; InvalidInput for a range that
    starts below 1, after its end or after the document; FileMissing.
    """
    inside = safe_path(path)
    if not is_memory(f"{WORKSPACE}/{inside}"):
        raise PathRefused(f"{path} is no memory document: those are MEMORY.md and the Markdown files below memory/.")
    if start < 1 or (end is not None and end < start):
        raise InvalidInput(f"Lines count from 1 and a range ends after its start: {start} to {end} is none.")
    data = (await files.read(f"{WORKSPACE}/{inside}")).data
    lines = decode_lines(redactor.clean_bytes(inline_fields(hide_quarantined(to_utf8(data)))))
    total = len(lines) - (lines[-1] == "")
    if start > max(total, 1):
        raise InvalidInput(f"{path} has {total} lines; line {start} is past its end.")
    last = min(end or total, total)
    return DocumentLines(path=inside, start=start, end=last, total=total, text="\n".join(lines[start - 1 : last]))
