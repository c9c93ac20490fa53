r"""Escaping: any text can stand in a Markdown bullet, and what stands there can still be read.

Only what could be taken for our own syntax is escaped, with a backslash that a reader sees: a tag, a field, an id,
a heading, a fence. White space that an editor would strip becomes `\s` and `\t`, a control character `\u{1b}`, an
empty first or last line `\e`. A backslash is doubled only where it would otherwise start an escape, so Windows
paths mostly stay as they are.
"""

import re

__all__ = ["escape_content", "escape_value", "unescape"]

_ESCAPE_LETTERS = {"s": " ", "t": "\t", "r": "\r", "n": "\n", "e": ""}
_AMBIGUOUS = re.compile(r"\\(?=[\\#\[\]^`~strne]|u\{|[\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufeff]|\Z)")
_LOOKALIKE = re.compile(
    r"(?<!\S)(?=#[^\s#]|#{1,6}(?:\s|$)|\[[A-Za-z][\w-]*::|\^[A-Za-z0-9-])|^[^\S\n]*(?=```|~~~)", re.MULTILINE
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|([strne])|([\\#\[\]^`~]))")
_TRAILING_SPACE = re.compile(r"[ \t](?=\n|\Z)")


def escape_content(text: str) -> str:
    """Return `text` so that no line of it reads as a tag, field, id, heading or fence, and nothing of it gets lost."""
    shown = _AMBIGUOUS.sub(r"\\\\", text)
    shown = _LOOKALIKE.sub(lambda match: match.group() + "\\", shown)
    shown = _CONTROL.sub(_escape_control, shown.replace("\r", "\\r"))
    shown = _TRAILING_SPACE.sub(lambda match: "\\s" if match.group() == " " else "\\t", shown)
    if shown[:1] in {" ", "\t"}:
        shown = ("\\s" if shown[0] == " " else "\\t") + shown[1:]
    if shown.startswith("\n") or not shown:
        shown = "\\e" + shown
    return shown + "\\e" if shown.endswith("\n") else shown


def escape_value(text: str) -> str:
    """Return `text` on one line for the inside of a field's brackets."""
    shown = re.sub(r"[\\\[\]]", lambda match: "\\" + match.group(), text)
    shown = _CONTROL.sub(_escape_control, shown.replace("\r", "\\r").replace("\n", "\\n"))
    shown = re.sub(r"^[ \t]|[ \t]$", lambda match: "\\s" if match.group() == " " else "\\t", shown)
    return shown or "\\e"


def unescape(shown: str) -> str:
    """Return the text that was escaped; a backslash that starts no escape stays."""
    return _ESCAPE.sub(_unescape_match, shown)


def _escape_control(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match.group()):x}}}"


def _unescape_match(match: re.Match[str]) -> str:
    number, letter, mark = match.groups()
    if number is not None:
        code = int(number, 16)
        return chr(code) if code <= 0x10FFFF else match.group()
    return _ESCAPE_LETTERS[letter] if letter is not None else str(mark)
