"""Fencing: memories are put into a prompt as data in a fenced block, each with its source and trust.

    <memory note="...">
    <memory-item source="ledger 2026-11-21" trust="user" kind="decision" age="3 days" id="...">
    We deploy only from main.
    </memory-item>
    </memory>

Only the one character that starts a tag or the turn of another speaker is escaped, and the escape is reversible.

Invariants: the text of an item can neither close nor open a tag of the fence, nor begin another speaker's turn; text
that does not try stays as it is, byte for byte; `parse_fence` gives the exact texts back.
"""

import enum
import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ricordo.lazy import lazy_compile

__all__ = [
    "MAX_NAME_LETTERS",
    "FencedItem",
    "Trust",
    "contains_fence",
    "escape_tags",
    "fold_tag_name",
    "is_invisible",
    "parse_fence",
    "render_fence",
    "unescape_tags",
]


@functools.total_ordering
class Trust(enum.Enum):
    """The origin of a memory. `trust >= Trust.AGENT` excludes EXTERNAL.

    USER: the person said or saved it. AGENT: the agent concluded it. EXTERNAL: it came from a tool, the web or an
    import. USER is the highest level and EXTERNAL the lowest.
    """

    USER = "user"
    AGENT = "agent"
    EXTERNAL = "external"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Trust):
            return NotImplemented
        return _TRUST_ORDER[self] < _TRUST_ORDER[other]


_TRUST_ORDER = {Trust.EXTERNAL: 0, Trust.AGENT: 1, Trust.USER: 2}


MAX_NAME_LETTERS = 48
"""The number of letters and digits in the longest tag name, without separators."""
# Names that hosts and model templates use for instructions, turns and tool traffic, without separators. `user` is not
# included: no template opens a turn with it alone, and `List<User>` is common in code.
_RESERVED_NAMES = """
system systemprompt systemreminder systemmessage systemnote systeminstruction systeminstructions instruction
instructions developer assistant human antml functioncalls functioncall functionresults functionresult toolcall
toolcalls tooluse toolresult toolresults toolresponse startofturn endofturn sys think thinking
"""
_RESERVED = frozenset(_RESERVED_NAMES.split())
_TOKENS_NAMES = """
imstart imend imsep endoftext startoftext startofturn endofturn startheaderid endheaderid eotid eomid beginoftext
endofprompt system user assistant tool start end message channel return call constrain
"""
_TOKENS = frozenset(_TOKENS_NAMES.split())
_SQUARE_TAGS = frozenset(["INST", "SYSTEMPROMPT", "AVAILABLETOOLS", "TOOLCALLS", "TOOLRESULTS", "TOOLCONTENT"])
_TURN_NAMES = frozenset(["human", "assistant", "system"])
_OPENING_BRACKETS = "<＜﹤‹〈⟨〈❮˂ᐸ"
_CLOSING_BRACKETS = frozenset(">＞﹥›〉⟩〉❯˃ᐳ")
_SLASHES = frozenset("/∕⁄⧸╱／\\＼")
_BARS = frozenset("|｜∣ǀ❘")
_SEPARATORS = frozenset("-_.▁‐‑–−＿")
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_BLANK_MARKS = frozenset("\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_INVISIBLE = _BLANK_LETTERS | _BLANK_MARKS
_LOOKALIKES = dict(zip("аеорсухіѕԁһјӏոսοατυικνмтѵɡı", "aeopcyxisdhjlnuoatuikvmtvgi", strict=True))
_TAG_OPENER = lazy_compile(rf"&(?P<more>(?:amp;)*)(?P<code>lt|#x[0-9A-F]{{2,5}});|[{_OPENING_BRACKETS}\[［:]")


def escape_tags(text: str, names: AbstractSet[str]) -> str:
    """Escape every tag in `text` with one of `names` (folded, see `fold_tag_name`) or a reserved name.

    Return the same object if nothing has to change.
    """
    return _rewrite(text, names, reading=False)


def unescape_tags(text: str, names: AbstractSet[str]) -> str:
    """Return the text that was passed to `escape_tags` with the same `names`."""
    return _rewrite(text, names, reading=True)


def fold_tag_name(name: str) -> str:
    """Return `name` in the form in which tags are compared.

    The form is lower case, without separators, accents and invisible characters, and with lookalikes replaced.
    """
    return "".join(_fold_character(mark) for mark in name if mark not in _SEPARATORS)


@functools.lru_cache(maxsize=4_096)
def is_invisible(mark: str) -> bool:
    """Return whether a character is invisible and has no width: format or control characters, joiners, bare accents."""
    return mark in _BLANK_LETTERS or (
        unicodedata.category(mark) in {"Cf", "Cc", "Mn", "Me", "Cn", "Cs"} and not mark.isspace()
    )


def is_blank(text: str) -> bool:
    """Return whether `text` has no visible character.

    Invisible are white space, format and control characters, and blank letters.
    """
    return all(mark.isspace() or (is_invisible(mark) and not _is_accent(mark)) for mark in text)


def _is_accent(mark: str) -> bool:
    """Return whether a mark is visible though it has no width, or is not assigned to a character."""
    return mark not in _INVISIBLE and unicodedata.category(mark) in {"Mn", "Me", "Cn", "Cs"}


@functools.lru_cache(maxsize=4_096)
def _fold_character(mark: str) -> str:
    if is_invisible(mark):
        return ""
    plain = "".join(part for part in unicodedata.normalize("NFKD", mark) if not is_invisible(part))
    return "".join(_LOOKALIKES.get(part, part) for part in plain.casefold())


def _rewrite(text: str, names: AbstractSet[str], *, reading: bool) -> str:
    parts: list[str] = []
    done = 0
    for opener in _TAG_OPENER.finditer(text):
        changed = _replacement(opener, reading=reading)
        if changed is not None and _is_dangerous(text, opener, names):
            parts += [text[done : opener.start()], changed]
            done = opener.end()
    return "".join([*parts, text[done:]]) if parts else text


def _replacement(opener: re.Match[str], *, reading: bool) -> str | None:
    """Return the replacement of a dangerous `opener`; None for an `opener` that stays unchanged."""
    code, more = opener["code"], opener["more"]
    mark = _opener_mark(opener)
    if mark is None or (reading and code is None):
        return None
    if not reading:
        return f"&{_reference_code(mark)};" if code is None else f"&amp;{more}{code};"
    return f"&{more.removeprefix('amp;')}{code};" if more else mark


def _reference_code(mark: str) -> str:
    return "lt" if mark == "<" else f"#x{ord(mark):X}"


def _opener_mark(opener: re.Match[str]) -> str | None:
    """Return the character that `opener` is or encodes; None for a reference that escaping never writes."""
    code = opener["code"]
    if code is None:
        return opener.group()
    mark = "<" if code == "lt" else chr(int(code[2:], 16))
    return mark if _reference_code(mark) == code and mark in _OPENING_BRACKETS + "[［:" else None


def _is_dangerous(text: str, opener: re.Match[str], names: AbstractSet[str]) -> bool:
    mark = _opener_mark(opener)
    if mark == ":":
        return _ends_a_turn_name(text, opener.start())
    if mark in {"[", "［"}:
        return _is_square_tag(text, opener.end())
    return _is_tag(text, opener.end(), names)


def _visible_characters(text: str, at: int) -> Iterator[str]:
    """Yield the visible characters from `at` on."""
    return (text[index] for index in range(at, len(text)) if not is_invisible(text[index]))


def _is_tag(text: str, at: int, names: AbstractSet[str]) -> bool:
    """Return whether a tag begins with the bracket before `at`.

    A name directly after the bracket or a slash makes a tag as soon as the name ends. With white space elsewhere, the
    name must be the only text before the closing bracket, so `used < memory and free > 0` is not a tag.
    """
    word, plain, slash = "", True, False
    for mark in _visible_characters(text, at):
        if mark in _BARS and not word and not slash:
            return _is_special_token(text, text.index(mark, at) + 1)
        if mark in _SEPARATORS or (letters := _fold_character(mark)).isalnum():
            word += "" if mark in _SEPARATORS else letters
            if len(word) > MAX_NAME_LETTERS:
                return False
        elif mark.isspace() or mark in _SLASHES:
            if word and plain and _is_tag_name(word, names):
                return True
            slash = slash or (not word and mark in _SLASHES)
            plain = slash and not word
        else:
            return _is_tag_name(word, names) and (plain or mark in _CLOSING_BRACKETS)
    return plain and _is_tag_name(word, names)


def _is_tag_name(word: str, names: AbstractSet[str]) -> bool:
    return word in names or word in _RESERVED


def _is_special_token(text: str, at: int) -> bool:
    """Return whether a special token such as `<|im_start|>` continues at `at`, after its first bar."""
    word, spaced, closing = "", False, False
    for mark in _visible_characters(text, at):
        if closing and not mark.isspace():
            return mark in _CLOSING_BRACKETS and bool(word) and (not spaced or word in _TOKENS)
        if mark in _BARS:
            closing = True
        elif mark in _SEPARATORS or (letters := _fold_character(mark)).isalnum():
            word += "" if mark in _SEPARATORS else letters
        elif mark.isspace():
            spaced = True
        else:
            break
        if len(word) > MAX_NAME_LETTERS:
            return False
    return word in _TOKENS and not spaced


def _is_square_tag(text: str, at: int) -> bool:
    """Return whether a tag in square brackets, always in capitals, continues at `at`."""
    word = ""
    for mark in _visible_characters(text, at):
        if mark in _SLASHES or mark.isspace() or mark in _SEPARATORS:
            continue
        plain = unicodedata.normalize("NFKC", mark)
        if plain == "]":
            return word in _SQUARE_TAGS
        word += plain
        if not plain.isalpha() or len(word) > MAX_NAME_LETTERS:
            return False
    return False


def _ends_a_turn_name(text: str, at: int) -> bool:
    """Return whether a turn marker such as `Human:` after an empty line ends at `at`."""
    word, lines, index = "", 0, at - 1
    while index >= 0 and (is_invisible(text[index]) or (text[index].isspace() and text[index] != "\n" and not word)):
        index -= 1
    while (
        index >= 0
        and len(word) <= 9
        and not text[index].isspace()
        and (text[index].isalpha() or is_invisible(text[index]))
    ):
        word = _fold_character(text[index]) + word
        index -= 1
    if word not in _TURN_NAMES:
        return False
    while index >= 0 and lines < 2 and (text[index].isspace() or is_invisible(text[index])):
        lines += text[index] == "\n"
        index -= 1
    return lines >= 2 or (lines == 1 and index < 0)


_FENCE_NAME = lazy_compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")
_PLAIN_VALUE = lazy_compile(r"[A-Za-z0-9 _.,:/#@+-]*")
_FENCE_OPENING = lazy_compile(r'<(?P<name>[a-z][a-z0-9_-]*)(?: note="[^"\n]*")?>\n')
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "[": "&#x5B;"}
_OTHER_BRACKETS = frozenset("＜﹤‹〈⟨〈❮˂ᐸ＞﹥›〉⟩〉❯˃ᐳ［")


@dataclass(frozen=True, kw_only=True)
class FencedItem:
    """One remembered text with the metadata that a reader needs.

    The metadata are its source, its trust, its age in words, its kind, and the id for corrections and removal.
    """

    text: str
    source: str
    trust: Trust
    age: str | None = None
    kind: str | None = None
    id: str | None = None


def render_fence(items: Sequence[FencedItem], *, name: str = "memory", note: str | None = None) -> str:
    """Return a block with `items` in order, without a final line end; "" for no items.

    `note` is one line that says how to read the block. Raises: ValueError if `name` is not lower-case words of letters
    and digits joined by `-` or `_`.
    """
    names = _tag_names(name)
    if not items:
        return ""
    opening = f"<{name}{_attribute('note', note)}>"
    blocks = [f"<{name}-item{_attributes(item)}>\n{escape_tags(item.text, names)}\n</{name}-item>" for item in items]
    return "\n".join([opening, *blocks, f"</{name}>"])


def parse_fence(text: str) -> tuple[str, ...] | None:
    """Return the exact texts of a block from `render_fence`, in order; () for empty text; None for anything else.

    White space around the block is ignored.
    """
    text = text.strip()
    opening = _FENCE_OPENING.match(text)
    if opening is None:
        return None if text else ()
    name, at = opening["name"], opening.end()
    if not _is_valid_name(name):
        return None
    names = _tag_names(name)
    item = re.compile(rf'<{name}-item(?: [a-z]+="[^"\n]*")+>\n')
    ending, texts = f"\n</{name}-item>\n", []
    while (start := item.match(text, at)) is not None:
        end = text.find(ending, start.end() - 1)
        if end < 0:
            return None
        body = text[start.end() : end]
        plain = unescape_tags(body, names)
        if escape_tags(plain, names) != body:
            return None
        texts.append(plain)
        at = end + len(ending)
    return tuple(texts) if texts and text[at:] == f"</{name}>" else None


def contains_fence(text: str, name: str = "memory") -> bool:
    """Return whether `text` contains the beginning of a block from `render_fence` with this `name`.

    The end of the block may be cut off. Text that only mentions such a block, or an item that quotes one, does not
    count. Raises: ValueError for a `name` that `render_fence` would refuse.
    """
    _tag_names(name)
    return re.search(rf'<{name}(?: note="[^"\n]*")?>\n<{name}-item source="[^"\n]*" trust="[a-z]+"', text) is not None


def _is_valid_name(name: str) -> bool:
    return _FENCE_NAME.match(name) is not None and len(fold_tag_name(name + "item")) <= MAX_NAME_LETTERS


def _tag_names(name: str) -> frozenset[str]:
    if not _is_valid_name(name):
        raise ValueError(f"a fence is named like 'memory' or 'past-session', in lower case, not {name!r}")
    return frozenset([fold_tag_name(name), fold_tag_name(name + "item")])


def _attributes(item: FencedItem) -> str:
    pairs = (
        ("source", item.source),
        ("trust", item.trust.value),
        ("kind", item.kind),
        ("age", item.age),
        ("id", item.id),
    )
    return "".join(_attribute(key, value) for key, value in pairs)


def _attribute(key: str, value: str | None) -> str:
    if value is None:
        return ""
    # most values are ids and names, which need no check of each character
    shown = value if _PLAIN_VALUE.fullmatch(value) else "".join(_attribute_character(mark) for mark in value)
    return f' {key}="{shown}"'


def _attribute_character(mark: str) -> str:
    """Return a character for use in quotes, as a reference if it is invisible or could end the quotes, line or tag."""
    if mark in _ENTITIES:
        return _ENTITIES[mark]
    hidden = is_invisible(mark) or mark in _OTHER_BRACKETS or (mark.isspace() and mark != " ")
    return f"&#x{ord(mark):X};" if hidden else mark
