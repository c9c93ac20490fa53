"""Decide whether the value next to a secret's name is a secret, or a placeholder, a reference, code or prose.

Invariant: decisions use the words and the form of the value, never its entropy, so they can be explained. Well-known
values (`changeme`, `password`, `example`) protect nothing and are not marked.
"""

import enum
import re

from ricordo.language.packs import pack_phrases, pack_words
from ricordo.lazy import lazy_compile

__all__ = ["NameStrength", "ValueForm", "is_placeholder", "is_secret_value", "is_word_passphrase"]


class NameStrength(enum.IntEnum):
    """How clearly a name denotes a secret: WEAK `token`, MEDIUM `api_key` or `client_secret`, STRONG `password`."""

    WEAK = 1
    MEDIUM = 2
    STRONG = 3


class ValueForm(enum.Enum):
    """The form in which a value follows its name.

    LITERAL is always a value (an environment line, a query string); QUOTED is in quotes; BARE may be a variable; PROSE
    follows "is" in a sentence or is in a table.
    """

    LITERAL = "literal"
    QUOTED = "quoted"
    BARE = "bare"
    PROSE = "prose"


_TEMPLATE = lazy_compile(
    r"<[^<>]*>|\$\{[^{}]*\}|\$\([^()]*\)|\$\{\{.*\}\}|\$[A-Za-z_][A-Za-z0-9_.:]*|\{\{.*\}\}|\{[^{}]*\}|%[A-Za-z_]+%"
    r"|%\([A-Za-z_]+\)?s?|%[sdr]|\[[^\[\]]*\]|\([^()]*\)|[xX*.\-_#?•●∙…0]+|!.*|@[\w./-]+|ENC\[.*",
    re.DOTALL,
)
_REFERENCE = lazy_compile(
    r"(?:os\.(?:environ|getenv)|process\.env|import\.meta|env[.:\[(/]|secrets?[.:/]|vault:|op://|ssm:|arn:|keyring"
    r"|file:|https?://|projects/|[~.]{0,2}/[\w.~-]|[A-Za-z]:\\)"
)
_KEY_FILE = lazy_compile(r"[\w./\\~-]*\.(?:pem|key|json|ya?ml|toml|txt|env|crt|p12|pfx)\Z")
_INSTRUCTION = lazy_compile(lambda: pack_phrases("secret_instruction"))
_SAMPLE = lazy_compile(
    r"EXAMPLE|(?i:your[-_ ]|placeholder|redacted|changeme|x{6}|\*{4}|<[a-z _-]+>|\.\.\.|…|insert[-_ ])"
)
_NOT_ALPHANUMERIC = lazy_compile(r"[^a-z0-9]+")


def is_placeholder(value: str) -> bool:
    """Return whether `value` only represents a secret: a template, a reference, a mask or a known dummy."""
    text = value.strip()
    if not text or _TEMPLATE.fullmatch(text) or _REFERENCE.match(text) or _KEY_FILE.match(text):
        return True
    if _SAMPLE.search(text):
        return True
    if not text.isascii() and text.casefold().rstrip(".!") in pack_words("dummy_secret"):
        return True
    words = _NOT_ALPHANUMERIC.sub("", text.lower())
    if text.isascii() and not words:
        return len(text) < 4
    return words in pack_words("dummy_secret") or (len(words) <= 64 and _INSTRUCTION.fullmatch(words) is not None)


_IDENTIFIER = lazy_compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)*\Z", re.ASCII)
_SNAKE = lazy_compile(r"[a-z]+(?:_[a-z0-9]+)+\Z")
_CODE_WORD = lazy_compile(
    r"passw|token|secret|key|cred|user|config|setting|args?\b|arg\d|env|input|value|self|this|request|response"
    r"|default|param|option|result|data|var|string|field|line|item|model|version|encoded|type",
    re.IGNORECASE,
)
_PATTERN = lazy_compile(r"[\[\](){}<>^|\\]")
_NUMBERS = lazy_compile(r"^[\d.,:%/+\-–TZ]+\Z")
_VERSION = lazy_compile(r"^[vV]?\d+(?:\.\d+)+[a-z0-9.-]*\Z")
_CONSTANT = lazy_compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_WORDS = lazy_compile(r"[^\W\d_]+(?:[-_.:/'’ ][^\W\d_]+)*[!.]?\Z")
_RULE_LIST = lazy_compile(r"[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+\Z")
_NUMBERED = lazy_compile(r"\d{1,3}[-–][^\W\d_]+\Z")
_LETTERS = lazy_compile(r"[A-Za-z]+\Z")
_HAS_DIGIT = lazy_compile(r"\d")
_HAS_LETTER = lazy_compile(r"[^\W\d_]")
_SENTENCE = lazy_compile(lambda: rf"\b(?:{pack_phrases('sentence_word')})\b", re.IGNORECASE)
_DESCRIPTIVE = lazy_compile(lambda: rf"\w+[-–](?:{pack_phrases('compound_end')})\Z", re.IGNORECASE)
_PARTICIPLE = lazy_compile(lambda: rf"\w+(?:{pack_phrases('descriptive_ending')})\Z")
_CASED = lazy_compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONSONANTS = lazy_compile(r"[bcdfghjklmnpqrstvwxz]{6}")
_MIN_PASSPHRASE = 10
_MAX_JUMBLED_PART = 2.5
_MIN_LENGTHS = {NameStrength.WEAK: 8, NameStrength.MEDIUM: 6, NameStrength.STRONG: 4}


def is_secret_value(value: str, strength: NameStrength, form: ValueForm) -> bool:
    """Return whether `value`, found next to a secret's name in this `form`, is the secret itself."""
    if is_placeholder(value) or _CONSTANT.match(value) or _RULE_LIST.match(value) or _NUMBERED.match(value):
        return False
    if form is ValueForm.QUOTED and strength is NameStrength.STRONG:
        return len(value) >= 3 and not (" " in value and _SENTENCE.search(value))
    if len(value) < _MIN_LENGTHS[strength] or any(char.isspace() for char in value):
        return False
    if _WORDS.match(value):
        return _is_word_secret(value, strength, form)
    if strength is not NameStrength.STRONG and any(shape.search(value) for shape in (_PATTERN, _NUMBERS, _VERSION)):
        return False
    decide = {ValueForm.PROSE: _is_prose_secret, ValueForm.BARE: _is_bare_secret}.get(form)
    return decide is None or decide(value, strength)


def is_word_passphrase(value: str) -> bool:
    """Return whether `value`, four or more words after the name of a passphrase, is one.

    No word of a passphrase belongs to a sentence.
    """
    words = value.split(" ")
    if value != value.lower() or len({*words}) < len(words):
        return False
    return not any(
        word in pack_words("not_passphrase") or word in pack_words("compound_part") or _PARTICIPLE.match(word)
        for word in words
    )


def _is_word_secret(value: str, strength: NameStrength, form: ValueForm) -> bool:
    """Return whether a value of letters only is a passphrase, not a word of the sentence or a variable."""
    if form in {ValueForm.PROSE, ValueForm.BARE}:
        return _is_passphrase(value, strength) or _is_jumbled(value)
    if strength is NameStrength.STRONG:
        return True
    return len(value) >= (10 if strength is NameStrength.MEDIUM else 20) and _LETTERS.match(value) is not None


def _is_passphrase(value: str, strength: NameStrength) -> bool:
    """Return whether words joined by hyphens are a passphrase, not a compound: `correct-horse`, not `read-only`.

    Three words are required if the name is not that of a password.
    """
    parts = value.lower().split("-")
    if len(parts) < (2 if strength is NameStrength.STRONG else 3) or len(value) < _MIN_PASSPHRASE:
        return False
    if value != value.lower() and len(parts) < 3:
        # German writes such compounds with capitals
        return False
    plain = all(len(part) >= 3 and part.isalpha() and part not in pack_words("compound_part") for part in parts)
    return plain and not _DESCRIPTIVE.match(value) and not _PARTICIPLE.match(parts[-1])


def _is_jumbled(value: str) -> bool:
    """Return whether letters are neither a word nor a name in camel case: `xKqRtVbnM`, `qwrtzpsd`."""
    if not value.isalpha() or not value.isascii() or len(value) < 8 or value.isupper() or _CODE_WORD.search(value):
        return False
    parts = _CASED.findall(value)
    return len(value) < _MAX_JUMBLED_PART * len(parts) or _CONSONANTS.search(value) is not None


def _is_prose_secret(value: str, strength: NameStrength) -> bool:
    if _DESCRIPTIVE.match(value) or _VERSION.match(value):
        return False
    if strength is NameStrength.STRONG:
        return not _NUMBERS.match(value) or value.isdigit()
    last = value.lower().rpartition("-")[2]
    if last != value.lower() and (last in pack_words("compound_part") or _PARTICIPLE.match(last)):
        return False
    return _HAS_DIGIT.search(value) is not None and _HAS_LETTER.search(value) is not None


def _is_bare_secret(value: str, strength: NameStrength) -> bool:
    if _IDENTIFIER.match(value) and ("." in value or ":" in value or "->" in value or _CODE_WORD.search(value)):
        return False
    if strength is NameStrength.STRONG:
        return True
    last = value.lower().rpartition("-")[2]
    if last != value.lower() and (last in pack_words("compound_part") or _PARTICIPLE.match(last)):
        return False
    return _HAS_DIGIT.search(value) is not None and _HAS_LETTER.search(value) is not None and not _SNAKE.match(value)
