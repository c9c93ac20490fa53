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

from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "LOOKALIKES",
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
LOOKALIKES = dict(zip("аеорсухіѕԁһјӏոսοατυικνмтѵɡı", "aeopcyxisdhjlnuoatuikvmtvgi", strict=True))
"""Letters of other scripts by the plain ones that they look like, in lower case."""
_TAG_OPENER = lazy_compile(rf"&(?P<more>(?:amp;)*)(?P<code>lt|#x[0-9A-F]{{2,5}});|[{_OPENING_BRACKETS}\[［:]")


def escape_tags(text: str, names: AbstractSet[str]) -> str:
    """Escape every tag in `text` with one of `names` (folded, see `fold_tag_name`) or a reserved name.

    Return the same object if nothing has to change.
    """
    return _rewrite(text, names, unescape=False)


def unescape_tags(text: str, names: AbstractSet[str]) -> str:
    """Return the text that was passed to `escape_tags` with the same `names`."""
    return _rewrite(text, names, unescape=True)


def fold_tag_name(name: str) -> str:
    """Return `name` in the form in which tags are compared.

    The form is lower case, without separators, accents and invisible characters, and with lookalikes replaced.
    """
    return "".join(_fold_character(char) for char in name if char not in _SEPARATORS)


@functools.lru_cache(maxsize=4_096)
def is_invisible(char: str) -> bool:
    """Return whether a character is invisible and has no width: format or control characters, joiners, bare accents."""
    return char in _BLANK_LETTERS or (
        unicodedata.category(char) in {"Cf", "Cc", "Mn", "Me", "Cn", "Cs"} and not char.isspace()
    )


def is_blank(text: str) -> bool:
    """Return whether `text` has no visible character.

    Invisible are white space, format and control characters, and blank letters.
    """
    return all(char.isspace() or (is_invisible(char) and not _is_accent(char)) for char in text)


def _is_accent(char: str) -> bool:
    """Return whether a mark is visible though it has no width, or is not assigned to a character."""
    return char not in _INVISIBLE and unicodedata.category(char) in {"Mn", "Me", "Cn", "Cs"}


@functools.lru_cache(maxsize=4_096)
def _fold_character(char: str) -> str:
    if is_invisible(char):
        return ""
    plain = "".join(part for part in unicodedata.normalize("NFKD", char) if not is_invisible(part))
    return "".join(LOOKALIKES.get(part, part) for part in plain.casefold())


def _rewrite(text: str, names: AbstractSet[str], *, unescape: bool) -> str:
    parts: list[str] = []
    written_to = 0
    for opener in _TAG_OPENER.finditer(text):
        changed = _replacement(opener, unescape=unescape)
        if changed is not None and _is_dangerous(text, opener, names):
            parts += [text[written_to : opener.start()], changed]
            written_to = opener.end()
    return "".join([*parts, text[written_to:]]) if parts else text


def _replacement(opener: re.Match[str], *, unescape: bool) -> str | None:
    """Return the replacement of a dangerous `opener`; None for an `opener` that stays unchanged."""
    code, extra_escapes = opener["code"], opener["more"]
    char = _opener_mark(opener)
    if char is None or (unescape and code is None):
        return None
    if not unescape:
        return f"&{_reference_code(char)};" if code is None else f"&amp;{extra_escapes}{code};"
    return f"&{extra_escapes.removeprefix('amp;')}{code};" if extra_escapes else char


def _reference_code(char: str) -> str:
    return "lt" if char == "<" else f"#x{ord(char):X}"


def _opener_mark(opener: re.Match[str]) -> str | None:
    """Return the character that `opener` is or encodes; None for a reference that escaping never writes."""
    code = opener["code"]
    if code is None:
        return opener.group()
    char = "<" if code == "lt" else chr(int(code[2:], 16))
    return char if _reference_code(char) == code and char in _OPENING_BRACKETS + "[［:" else None


def _is_dangerous(text: str, opener: re.Match[str], names: AbstractSet[str]) -> bool:
    char = _opener_mark(opener)
    if char == ":":
        return _ends_a_turn_name(text, opener.start())
    if char in {"[", "［"}:
        return _is_square_tag(text, opener.end())
    return _is_tag(text, opener.end(), names)


def _visible_characters(text: str, position: int) -> Iterator[str]:
    """Yield the visible characters from `position` on."""
    return (text[index] for index in range(position, len(text)) if not is_invisible(text[index]))


def _is_tag(text: str, position: int, names: AbstractSet[str]) -> bool:
    """Return whether a tag begins with the bracket before `position`.

    A name directly after the bracket or a slash makes a tag as soon as the name ends. With white space elsewhere, the
    name must be the only text before the closing bracket, so `used < memory and free > 0` is not a tag.
    """
    word, plain, slash = "", True, False
    for char in _visible_characters(text, position):
        if char in _BARS and not word and not slash:
            return _is_special_token(text, text.index(char, position) + 1)
        if char in _SEPARATORS or (letters := _fold_character(char)).isalnum():
            word += "" if char in _SEPARATORS else letters
            if len(word) > MAX_NAME_LETTERS:
                return False
        elif char.isspace() or char in _SLASHES:
            if word and plain and _is_tag_name(word, names):
                return True
            slash = slash or (not word and char in _SLASHES)
            plain = slash and not word
        else:
            return _is_tag_name(word, names) and (plain or char in _CLOSING_BRACKETS)
    return plain and _is_tag_name(word, names)


def _is_tag_name(word: str, names: AbstractSet[str]) -> bool:
    return word in names or word in _RESERVED


def _is_special_token(text: str, position: int) -> bool:
    """Return whether a special token such as `<|im_start|>` continues at `position`, after its first bar."""
    word, spaced, closing = "", False, False
    for char in _visible_characters(text, position):
        if closing and not char.isspace():
            return char in _CLOSING_BRACKETS and bool(word) and (not spaced or word in _TOKENS)
        if char in _BARS:
            closing = True
        elif char in _SEPARATORS or (letters := _fold_character(char)).isalnum():
            word += "" if char in _SEPARATORS else letters
        elif char.isspace():
            spaced = True
        else:
            break
        if len(word) > MAX_NAME_LETTERS:
            return False
    return word in _TOKENS and not spaced


def _is_square_tag(text: str, position: int) -> bool:
    """Return whether a tag in square brackets, always in capitals, continues at `position`."""
    word = ""
    for char in _visible_characters(text, position):
        if char in _SLASHES or char.isspace() or char in _SEPARATORS:
            continue
        plain = unicodedata.normalize("NFKC", char)
        if plain == "]":
            return word in _SQUARE_TAGS
        word += plain
        if not plain.isalpha() or len(word) > MAX_NAME_LETTERS:
            return False
    return False


def _ends_a_turn_name(text: str, position: int) -> bool:
    """Return whether a turn marker such as `Human:` after an empty line ends at `position`."""
    word, lines, index = "", 0, position - 1
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
    name, position = opening["name"], opening.end()
    if not _is_valid_name(name):
        return None
    names = _tag_names(name)
    item = re.compile(rf'<{name}-item(?: [a-z]+="[^"\n]*")+>\n')
    ending, texts = f"\n</{name}-item>\n", []
    while (start := item.match(text, position)) is not None:
        end = text.find(ending, start.end() - 1)
        if end < 0:
            return None
        body = text[start.end() : end]
        plain = unescape_tags(body, names)
        if escape_tags(plain, names) != body:
            return None
        texts.append(plain)
        position = end + len(ending)
    return tuple(texts) if texts and text[position:] == f"</{name}>" else None


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
    escaped = value if _PLAIN_VALUE.fullmatch(value) else "".join(_attribute_character(char) for char in value)
    return f' {key}="{escaped}"'


def _attribute_character(char: str) -> str:
    """Return a character for use in quotes, as a reference if it is invisible or could end the quotes, line or tag."""
    if char in _ENTITIES:
        return _ENTITIES[char]
    hidden = is_invisible(char) or char in _OTHER_BRACKETS or (char.isspace() and char != " ")
    return f"&#x{ord(char):X};" if hidden else char
