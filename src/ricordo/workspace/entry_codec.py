"""Entries as Markdown bullets: `parse_entry(render_entry(entry)) == entry` for any content.

    - We deploy only from main. #deploy [kind:: decision] [at:: 2026-11-21T08:03:11.482Z] [by:: user] ^<id>

Further lines of the content are indented by two spaces, so they belong to the bullet for any Markdown reader;
paragraphs are separated by blank lines as usual. Tags, fields and the id are at the end of the last line. A field that
is unknown, or whose value can't be parsed, is stored in `Entry.extra`. A bullet that a person wrote without any of this
is a valid entry; its id is derived from the file, its text and its position among equal bullets.

In curated memory, which people read, the fields that only say where an entry comes from are in a comment at the end of
the file, one line for each id. A missing line loses no entry, and fields in a bullet override those in its line.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import lru_cache
from typing import get_args
from urllib.parse import quote, unquote

from ricordo.clock import encode_id, format_rfc3339, truncate_to_milliseconds
from ricordo.concurrency import yield_point
from ricordo.errors import DocumentInvalid, InvalidEntry, InvalidScope
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import Scope
from ricordo.workspace.entry import Author, Entry, EntryState, Source, parse_memory_rule
from ricordo.workspace.markdown import (
    BYTE_ORDER_MARK,
    decode_lines,
    escape_content,
    escape_value,
    has_any_id,
    is_utf8,
    is_utf16,
    split_lines,
    to_utf8,
    unescape,
)

__all__ = [
    "PINNED_FIELD",
    "RULE_FIELD_START",
    "LocatedEntry",
    "collect_again",
    "collect_fields",
    "derive_id",
    "inline_fields",
    "iter_bullets",
    "parse_entries",
    "parse_entry",
    "preview_line",
    "remove_entries",
    "render_entry",
    "render_prompt_lines",
    "without_field_comment",
]

PINNED_FIELD = b"[pinned:: yes]"
"""The field in the line of a pinned entry."""

RULE_FIELD_START = b"[rule:: "
"""The start of the field of an entry with a rule for tool calls."""

_SUFFIX_PATTERN = lazy_compile(
    r"(?<!\S)(?:#(?P<tag>(?=[\w/-]*[^\W\d_])[\w/-]++)|\[(?P<key>[A-Za-z][\w-]*):: (?P<value>(?:\\.|[^\[\]\\])*)\]"
    r"|\^(?P<id>[A-Za-z0-9-]+))(?!\S)"
)
_PLAIN_TAG = lazy_compile(r"(?=[\w/-]*[^\W\d_])[\w/-]++")
_HEADING = lazy_compile(r"(#{1,6})(?:\s|$)")
_HIDDEN = "\0"
"""A placeholder for a hidden entry; no line of a document equals it."""

_LONG_PATH_PATTERN = lazy_compile(r"memory/long/[A-Za-z0-9_.%~-]+\.md")
_BULLET_PATTERN = lazy_compile(rb"[-*+] +(?=\S)")
_FENCE_PATTERN = lazy_compile(rb"(`{3,}|~{3,})")
_AUTHORS: Mapping[str, Author] = {name: name for name in get_args(Author)}
_STATES: Mapping[str, EntryState] = {name: name for name in get_args(EntryState)}
_SOURCE_KEYS = frozenset({"from", "quote", "origin"})
_NO_SOURCE = Source()
_SCOPE_KEYS = tuple(field.name for field in fields(Scope))


@dataclass(frozen=True, kw_only=True)
class LocatedEntry:
    """An entry and its location: lines are 1-based and inclusive, `offset` and `length` count bytes.

    `long_path` is the path of the file with the full content if the bullet shows only its beginning.
    """

    entry: Entry
    path: str
    line: int
    end_line: int
    offset: int
    length: int
    long_path: str | None = None


def render_entry(entry: Entry, *, long: str | None = None) -> str:
    """Return the bullet of `entry`, ending in a newline; with `long`, the first line and a pointer to that file."""
    content = preview_line(entry.content) if long else entry.content
    body = escape_content(content).replace("\n", "\n  ")
    body = re.sub(r"\n  (?=\n)", "\n", body)
    plain = 0
    while plain < len(entry.tags) and _PLAIN_TAG.fullmatch(entry.tags[plain]):
        plain += 1
    suffix = [f"#{tag}" for tag in entry.tags[:plain]]
    field_pairs = [*_iter_fields(entry), *(("tag", tag) for tag in entry.tags[plain:])]
    if long:
        field_pairs.append(("long", long))
    suffix += [f"[{key}:: {escape_value(value)}]" for key, value in (*field_pairs, *entry.extra)]
    if entry.id:
        suffix.append(f"^{entry.id}")
    return f"- {' '.join([body, *suffix])}\n"


def preview_line(content: str, limit: int = 120) -> str:
    """Return the first non-blank line of `content`, cut to `limit` characters with an ellipsis."""
    first = next((line.strip() for line in content.splitlines() if line.strip()), "").strip()
    return first if len(first) <= limit and first == content else f"{first[: limit - 1].rstrip()}…"


def parse_entry(bullet: str) -> Entry:
    """Parse one bullet written by `render_entry`. Raises `DocumentInvalid` if it is not one entry."""
    entries = parse_entries(bullet, "")
    if len(entries) != 1:
        raise DocumentInvalid(f"This is not one bullet with an entry: {bullet[:60]!r}.")
    entry = entries[0].entry
    return entry if f"^{entry.id}" in bullet else replace(entry, id="")


def parse_entries(
    document: bytes | str, path: str, *, only: Callable[[bytes], bool] | None = None
) -> list[LocatedEntry]:
    """Return the entries of a Markdown document in order, ignoring headings, prose, front matter and fenced code.

    Bytes that are not UTF-8 become replacement characters in the content and do not affect other entries. In a UTF-16
    document, the offsets are those in its `to_utf8` form. With `only`, bullets for whose bytes it returns False are
    skipped, which is much cheaper than parsing them.
    """
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else to_utf8(document)
    collected = _read_field_comments(data)
    seen: Counter[str] = Counter()
    located = []
    for line, end_line, offset, block in iter_bullets(data):
        yield_point()
        parsed = None if only and not only(block) else _parse_bullet(block.decode("utf-8", "replace"), collected)
        if parsed is None:
            continue
        entry, long = parsed
        if not entry.id:
            entry = replace(entry, id=derive_id(path, entry.content, seen[entry.content]))
            seen[entry.content] += 1
        located.append(LocatedEntry(
            entry=entry, path=path, line=line, end_line=end_line, offset=offset, length=len(block), long_path=long,
        ))  # fmt: skip
    return located


def remove_entries(document: bytes, path: str, ids: Collection[str]) -> bytes:
    """Return the document without the bullets of these entries; every other byte stays."""
    removed = [one for one in parse_entries(document, path, only=has_any_id(ids)) if one.entry.id in ids]
    starts = (0, *(one.offset + one.length for one in removed))
    ends = (*(one.offset for one in removed), len(document))
    rest = b"".join(document[start:end] for start, end in zip(starts, ends, strict=True))
    if _COMMENT_START not in rest:
        return rest
    names = {name.encode() for name in ids}
    for start, end in reversed(_find_field_comments(rest)):
        lines = split_lines(rest[start:end])
        rest = rest[:start] + b"".join(line for line in lines if line.split(b" ", 1)[0] not in names) + rest[end:]
    return rest


def render_prompt_lines(document: bytes) -> list[str]:
    """Return the lines of a memory document for a prompt.

    Entries are shown without their fields. Superseded and retired entries and blank lines are left out, and so is a
    heading with only such entries below it.
    """
    document = without_field_comment(to_utf8(document).removeprefix(BYTE_ORDER_MARK))
    chunks, end = list[bytes](), 0
    for located in parse_entries(document, ""):
        active = located.entry.state == "active"
        bullet = "- " + located.entry.content.replace("\n", "\n  ") if active else _HIDDEN
        chunks += [document[end : located.offset], f"{bullet}\n".encode("utf-8", "replace")]
        end = located.offset + located.length
    lines = decode_lines(b"".join([*chunks, document[end:]]))
    return _without_empty_headings([line.rstrip() for line in lines if line.strip()])


def _without_empty_headings(lines: Sequence[str]) -> list[str]:
    """Return the lines without hidden entries, and without headings that have only hidden entries below them."""
    below, has_hidden = list[str](), False
    for line in reversed(lines):
        level = _level(line)
        is_last = not below or 0 < _level(below[-1]) <= level
        if line == _HIDDEN:
            has_hidden = True
        elif not (has_hidden and level and is_last):
            below.append(line)
            has_hidden = False
    return below[::-1]


def _level(line: str) -> int:
    """Return the level of a heading; 0 for any other line."""
    match = _HEADING.match(line)
    return len(match[1]) if match else 0


def derive_id(path: str, content: str, ordinal: int) -> str:
    """Return the id of a bullet without one: 26 characters that start with `h`, unlike any assigned id."""
    digest = hashlib.blake2b(f"{path}\0{content}\0{ordinal}".encode("utf-8", "replace"), digest_size=16).digest()
    return "h" + encode_id(int.from_bytes(digest))[1:]


def _iter_fields(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the fields that are not at their default, in the order they are written."""
    yield "kind", entry.kind
    if entry.time:
        yield "at", format_rfc3339(entry.time)
    if entry.since:
        yield "since", format_rfc3339(entry.since)
    if entry.confidence != 1.0:
        yield "confidence", repr(entry.confidence)
    yield "by", entry.by
    if entry.scope:
        yield from entry.scope.parts().items()
    source = entry.source
    if source.session is not None or source.messages:
        yield "from", f"{_quote_part(source.session or '')}#{','.join(map(_quote_part, source.messages))}"
    optional = {
        "quote": source.quote,
        "origin": source.origin,
        "state": None if entry.state == "active" else entry.state,
        "supersedes": entry.supersedes,
        "pinned": "yes" if entry.pinned else None,
        "confirmed": format_rfc3339(entry.confirmed) if entry.confirmed else None,
        "reason": entry.reason,
        "rule": entry.rule,
    }
    yield from ((key, value) for key, value in optional.items() if value is not None)


def iter_bullets(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield (first line, last line, offset, bytes) of each bullet at the left margin, without trailing blank lines."""
    return (block for block in _iter_blocks(data) if not block[3].startswith(_COMMENT_START))


def _iter_blocks(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield (first line, last line, offset, bytes) of each bullet at the left margin, and of each field comment."""
    offset = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    lines = split_lines(data[offset:])
    number = 0
    fence: bytes | None = None
    skip = _front_matter_length(lines)
    while number < len(lines):
        line = lines[number]
        mark = _FENCE_PATTERN.match(line)
        if number < skip or fence or mark:
            fence = _next_fence(fence, mark, line) if number >= skip else None
        elif _BULLET_PATTERN.match(line) or line.startswith(_COMMENT_START):
            end = (_find_bullet_end if _BULLET_PATTERN.match(line) else _find_comment_end)(lines, number)
            block = b"".join(lines[number:end])
            yield number + 1, end, offset, block
            number, offset = end, offset + len(block)
            continue
        number, offset = number + 1, offset + len(line)


def _front_matter_length(lines: list[bytes]) -> int:
    """Return the number of lines of YAML front matter at the top of the document."""
    if not lines or lines[0].strip() != b"---":
        return 0
    return next((number + 1 for number in range(1, len(lines)) if lines[number].strip() in {b"---", b"..."}), 0)


def _next_fence(fence: bytes | None, mark: re.Match[bytes] | None, line: bytes) -> bytes | None:
    if fence is None:
        return mark.group() if mark else None
    closes = mark is not None and mark.group().startswith(fence) and not line.strip().strip(fence[:1])
    return None if closes else fence


def _find_bullet_end(lines: list[bytes], start: int) -> int:
    """Return the line number after the bullet, which continues while lines are indented, even after blank lines."""
    end = number = start + 1
    while number < len(lines):
        if lines[number].startswith((b"  ", b"\t")) and lines[number].strip():
            end = number + 1
        elif lines[number].strip():
            break
        number += 1
    return end


def _parse_bullet(block: str, collected: Mapping[str, str]) -> tuple[Entry, str | None] | None:
    # a carriage return in the content is escaped, so one at the end of a line comes from an editor
    lines = block.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")
    lines[0] = lines[0][1:].lstrip(" ")
    lines[1:] = [line[2:] if line.startswith("  ") else line.removeprefix("\t") for line in lines[1:]]
    text, tags, field_pairs, entry_id = _split_suffix(lines[-1])
    if entry_id in collected:
        field_pairs = [*_missing_fields(collected[entry_id], field_pairs), *field_pairs]
    content = unescape("\n".join([*lines[:-1], text]))
    if not content.strip():
        return None
    known_fields, extra = _split_fields(field_pairs)
    found_tags = (*tags, *(value for key, value in field_pairs if key == "tag"))
    entry = _build_entry(content, found_tags, entry_id, known_fields, extra)
    return entry, known_fields.get("long")


def _split_suffix(line: str) -> tuple[str, list[str], list[tuple[str, str]], str]:
    """Split the last line of a bullet into its text, tags, fields and id."""
    end, entry_id = len(line.rstrip(" \t")), ""
    tags: list[str] = []
    field_pairs: list[tuple[str, str]] = []
    for match in reversed(list(_SUFFIX_PATTERN.finditer(line))):
        if line[match.end() : end].strip(" \t") or (match["id"] and (tags or field_pairs)):
            break
        end = match.start()
        if match["id"]:
            entry_id = match["id"]
        elif match["tag"]:
            tags.append(match["tag"])
        else:
            field_pairs.append((match["key"], unescape(match["value"])))
        end = len(line[:end].rstrip(" \t"))
    return line[:end], tags[::-1], field_pairs[::-1], entry_id


_COMMENT_START = b"<!-- ricordo-fields"
_COMMENT_HEAD = _COMMENT_START + b": where each memory above comes from. A missing line loses no memory.\n"
_COMMENT_LINE = lazy_compile(rb"[A-Za-z0-9-]+ \[[A-Za-z]")
_COMMENT_END = b"-->"
_OWN_FIELDS = frozenset({"merged", "outdated-by", "replaced", "retired", "reworded", "successor"})
"""The fields of a consolidation that a reader can do without."""
_READER_FIELDS = frozenset({"pinned", "state", "rule", "long", "tag"})
"""The fields that say how an entry is used, which stay in its bullet."""


def collect_fields(document: bytes) -> bytes:
    """Return a curated document whose bullets are text, tags and id, with their other fields in a comment at its end.

    A bullet without an id, or with fields that a person wrote, stays unchanged, and so does a document that is not
    UTF-8 or ends inside of code. No entry changes; `inline_fields` reverses it.
    """
    inline = inline_fields(document)
    if is_utf16(document) or not is_utf8(document):
        return document
    chunks, rows, end = list[bytes](), dict[bytes, bytes](), 0
    for _, _, offset, block in iter_bullets(inline):
        yield_point()
        bullet, entry_id, moved = _split_bullet_fields(block)
        if moved and rows.setdefault(entry_id, moved) == moved:
            chunks += [inline[end:offset], bullet]
            end = offset + len(block)
    if not rows:
        return inline
    text = b"".join([*chunks, inline[end:]])
    text += b"" if text.endswith(b"\n") else b"\n"
    comment = b"".join(entry_id + b" " + moved + b"\n" for entry_id, moved in sorted(rows.items()))
    collected = text + b"\n" + _COMMENT_HEAD + comment + _COMMENT_END + b"\n"
    return collected if _find_field_comments(collected) else document


def collect_again(document: bytes) -> bytes:
    """Return a curated document that has the fields of its entries in a comment with all of them there."""
    return collect_fields(document) if _find_field_comments(document) else document


def inline_fields(document: bytes) -> bytes:
    """Return a curated document with all fields of an entry in its bullet, and without the comment that had them."""
    collected = _read_field_comments(document)
    plain = without_field_comment(document)
    if not collected or not is_utf8(document):
        return plain if is_utf8(document) else document
    chunks, end = list[bytes](), 0
    for _, _, offset, block in iter_bullets(plain):
        chunks += [plain[end:offset], _add_bullet_fields(block, collected)]
        end = offset + len(block)
    return b"".join([*chunks, plain[end:]])


def without_field_comment(document: bytes, *, keep_lines: bool = False) -> bytes:
    """Return a document without the comment that has the fields of its entries, and the blank line above it.

    With `keep_lines`, the lines of the comment are empty instead.
    """
    for start, end in reversed(_find_field_comments(document)):
        is_last = end == len(document) and document[:start].endswith(b"\n\n") and not keep_lines
        lines = b"\n" * document.count(b"\n", start, end) if keep_lines else b""
        document = document[: start - 1 if is_last else start] + lines + document[end:]
    return document


def _find_field_comments(document: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each comment with fields, outside of code."""
    if _COMMENT_START not in document:
        return []
    return [
        (offset, offset + len(block))
        for _, _, offset, block in _iter_blocks(document)
        if block.startswith(_COMMENT_START)
    ]


def _find_comment_end(lines: list[bytes], start: int) -> int:
    """Return the line number after a comment with fields, whether or not its last line is there."""
    end = start + 1
    while end < len(lines) and _COMMENT_LINE.match(lines[end]):
        end += 1
    return end + (end < len(lines) and lines[end].strip() == _COMMENT_END)


def _read_field_comments(document: bytes) -> Mapping[str, str]:
    """Return the text of the fields in the comments of a document, by entry id."""
    rows = dict[str, str]()
    for start, end in _find_field_comments(document):
        for line in split_lines(document[start:end]):
            if _COMMENT_LINE.match(line):
                entry_id, _, text = line.decode("utf-8", "replace").strip().partition(" ")
                rows.setdefault(entry_id, text)
    return rows


def _missing_fields(text: str, field_pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the fields in a line of the comment that the bullet does not override.

    A bullet with an author has been written as a whole, after the comment.
    """
    keys = {key for key, _ in field_pairs}
    pairs = _split_suffix(text)[2] if "by" not in keys else []
    return [(key, value) for key, value in pairs if key not in _FIELD_CHECKS or key not in keys]


def _split_bullet_fields(block: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a bullet without the fields that go to the comment, its id, and these fields.

    The first field of another tool and those after it stay, so that fields of one name keep their order.
    """
    head, line, line_end = _split_last_line(block)
    text, _, field_pairs, entry_id = _split_suffix(line)
    if not entry_id or "by" not in [key for key, _ in field_pairs]:
        return block, b"", b""
    tokens = [*_SUFFIX_PATTERN.finditer(line, len(text))]
    foreign = next((token.start() for token in tokens if token["key"] and _is_foreign(token)), len(line))
    moved, kept = list[str](), list[str]()
    for token in tokens:
        is_moved = token["key"] and token["key"] not in _READER_FIELDS and token.start() < foreign
        (moved if is_moved else kept).append(token.group())
    fields_text = " ".join(moved)
    if _COMMENT_END.decode() in fields_text:
        return block, b"", b""
    bullet = head + (line[: tokens[0].start()] + " ".join(kept)).encode() + line_end
    return bullet, entry_id.encode(), fields_text.encode()


def _is_foreign(token: re.Match[str]) -> bool:
    """Tell whether a field belongs to another tool or a person."""
    key = token["key"]
    is_known = key in _FIELD_CHECKS and _FIELD_CHECKS[key](unescape(token["value"]))
    return not is_known and key not in _OWN_FIELDS and key != "tag"


def _add_bullet_fields(block: bytes, collected: Mapping[str, str]) -> bytes:
    """Return a bullet with the fields that `collected` has for its id."""
    head, line, line_end = _split_last_line(block)
    text, _, field_pairs, entry_id = _split_suffix(line)
    if entry_id not in collected:
        return block
    tokens = [*_SUFFIX_PATTERN.finditer(line, len(text))]
    missing = [f"[{key}:: {escape_value(value)}]" for key, value in _missing_fields(collected[entry_id], field_pairs)]
    start = next(token.start() for token in tokens if not token["tag"])
    return head + "".join([line[:start], *(f"{field} " for field in missing), line[start:]]).encode() + line_end


def _split_last_line(block: bytes) -> tuple[bytes, str, bytes]:
    """Return a bullet as the bytes before its last line, that line, and its end."""
    body = block.rstrip(b"\r\n")
    start = len(b"".join(split_lines(body)[:-1]))
    return block[:start], body[start:].decode(), block[len(body) :]


def _split_fields(field_pairs: list[tuple[str, str]]) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Separate the fields we can read from those we only preserve."""
    known_fields: dict[str, str] = {}
    extra = []
    for key, value in field_pairs:
        if key == "tag":
            continue
        if key in _FIELD_CHECKS and key not in known_fields and _FIELD_CHECKS[key](value):
            known_fields[key] = value
        else:
            extra.append((key, value))
    return known_fields, tuple(extra)


def _build_entry(
    content: str,
    tags: tuple[str, ...],
    entry_id: str,
    known_fields: Mapping[str, str],
    extra: tuple[tuple[str, str], ...],
) -> Entry:
    session, _, messages = known_fields.get("from", "").partition("#")
    scope = {key: known_fields[key] for key in _SCOPE_KEYS if key in known_fields}
    has_source = not known_fields.keys().isdisjoint(_SOURCE_KEYS)
    return Entry(
        content=content,
        kind=known_fields.get("kind", "fact"),
        tags=tags,
        id=entry_id,
        time=_parse_time(known_fields["at"]) if "at" in known_fields else None,
        since=_parse_time(known_fields["since"]) if "since" in known_fields else None,
        scope=Scope(**scope) if scope else None,
        by=_AUTHORS.get(known_fields.get("by", ""), "hand"),
        source=_NO_SOURCE
        if not has_source
        else Source(
            session=unquote(session, errors="surrogatepass") if session else None,
            messages=tuple(unquote(part, errors="surrogatepass") for part in messages.split(",")) if messages else (),
            quote=known_fields.get("quote"),
            origin=known_fields.get("origin"),
        ),
        confidence=float(known_fields.get("confidence", "1")),
        state=_STATES.get(known_fields.get("state", ""), "active"),
        supersedes=known_fields.get("supersedes"),
        pinned="pinned" in known_fields,
        confirmed=_parse_time(known_fields["confirmed"]) if "confirmed" in known_fields else None,
        reason=known_fields.get("reason"),
        rule=known_fields.get("rule"),
        extra=extra,
    )


def _quote_part(name: str) -> str:
    return quote(name, safe=" !$&'()*+-./:;<=>?@_|~", errors="surrogatepass")


# a time is parsed once when it is checked and once when it is read
@lru_cache(maxsize=64)
def _parse_time(text: str) -> datetime:
    return truncate_to_milliseconds(datetime.fromisoformat(text))


def _is_time(text: str) -> bool:
    try:
        return _parse_time(text).tzinfo is not None
    except (ValueError, OverflowError):
        return False


def _is_fraction(text: str) -> bool:
    try:
        return 0.0 <= float(text) <= 1.0
    except ValueError:
        return False


def _is_scope_part(text: str) -> bool:
    try:
        Scope(user=text)
    except InvalidScope:
        return False
    return True


def _is_rule(text: str) -> bool:
    try:
        parse_memory_rule(text)
    except InvalidEntry:
        return False
    return True


_FIELD_CHECKS: dict[str, Callable[[str], bool]] = {
    "kind": lambda text: bool(text.strip()),
    "at": _is_time,
    "since": _is_time,
    "confidence": _is_fraction,
    "by": lambda text: text in _AUTHORS,
    "from": lambda text: "#" in text,
    "quote": lambda _: True,
    "origin": lambda _: True,
    "state": lambda text: text in _STATES,
    "supersedes": lambda _: True,
    "pinned": lambda text: text == "yes",
    "confirmed": _is_time,
    "reason": lambda _: True,
    "rule": _is_rule,
    "long": lambda text: _LONG_PATH_PATTERN.fullmatch(text) is not None,
    **dict.fromkeys(_SCOPE_KEYS, _is_scope_part),
}
