"""The settings file `config.toml`, flattened to dotted keys with their lines.

It holds plain values and no secrets: an API key in it is refused, with a hint at the environment.

Invariant: an error names the line if it is known. A missing file counts as a file without settings.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from ricordo.errors import DocumentInvalid, InvalidSetting, StorageFailed
from ricordo.guard import has_secret
from ricordo.lazy import dataclass, lazy_compile

__all__ = ["CONFIG_FILE", "ConfigFile", "is_secret_name", "parsed_config", "read_config"]


CONFIG_FILE = "config.toml"
"""The name of the settings file, in the root."""
_MAX_BYTES = 256 * 1024
_ERROR_LINE = lazy_compile(r"at line (\d+)")
_TABLE_HEADER = lazy_compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_KEY_LINE = lazy_compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_LONG_QUOTES = lazy_compile(r"\"{3}|'{3}")
_DEEP_KEY = lazy_compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){50}""")
_SECRET_WORDS = frozenset({"apikey", "credential", "credentials", "key", "password", "passwd", "secret", "token"})


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """The settings in a file by dotted key, in file order, and the line of each (0 if unknown)."""

    path: Path
    values: Mapping[str, object] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, key: str) -> int:
        """Return the line of the key, or of its table."""
        while key:
            if key in self.lines:
                return self.lines[key]
            key = key.rpartition(".")[0]
        return 0

    def location_of(self, key: str) -> str:
        """Return the file and the line of the key, for display."""
        line = self.line_of(key)
        return f"{self.path}:{line}" if line else str(self.path)


def read_config(root: Path) -> ConfigFile:
    """Return the settings file of a root, empty if there is none. It blocks on the disk.

    Raises: DocumentInvalid, with the line, if the file is not TOML; InvalidSetting if it holds a secret; StorageFailed
    if it can't be read.
    """
    path = root / CONFIG_FILE
    try:
        if path.exists() and not path.is_file():
            raise StorageFailed(f"{path} can't be read: it is no file.")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ConfigFile(path=path)
    except OSError as error:
        raise StorageFailed(f"{path} can't be read: {error.strerror}.") from error
    if len(data) > _MAX_BYTES:
        raise DocumentInvalid(f"{path} is larger than {_MAX_BYTES:,} bytes.")
    config = parsed_config(path, data)
    for key, value in config.values.items():
        if has_secret(key) or _is_secret(key, value):
            name = "[hidden]" if has_secret(key) else key
            raise InvalidSetting(
                f"{config.location_of(key)}: {name} holds a secret. Keys belong in the environment, in the "
                f"variable of their "
                "provider such as OPENAI_API_KEY, not in a file that can be shared."
            )
    return config


def is_secret_name(key: str) -> bool:
    """Return whether the last part of a dotted key names a key, a token, a password or a secret."""
    words = re.split(r"[\W_]+", key.rpartition(".")[2].lower())
    return bool(_SECRET_WORDS & {*words, "".join(words)})


def parsed_config(path: Path, data: bytes) -> ConfigFile:
    """Parse a settings file, including secrets and settings that are refused elsewhere.

    Raises: DocumentInvalid, with the line, if it is not TOML.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentInvalid(f"{path}:{line}: not UTF-8.") from error
    # `tomllib` takes time quadratic in the depth of a key
    if deep_key := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep_key.start()) + 1
        raise DocumentInvalid(f"{path}:{line}: a name with far too many parts.")
    try:
        values = dict(_flatten(tomllib.loads(text), ""))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        match = _ERROR_LINE.search(str(error))
        line = int(match[1]) if match else text.rstrip().count("\n") + 1
        raise DocumentInvalid(f"{path}:{line}: not valid TOML.{_hint(text, line)}") from error
    return ConfigFile(path=path, values=values, lines=dict(_key_lines(text)))


def _hint(text: str, line: int) -> str:
    """Return a hint at what the line most likely lacks."""
    source_line = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    if re.fullmatch(r"\s*[\w.-]+\s*=\s*[^\s\"'\[{\d+=-].*", source_line) and not re.search(
        r"=\s*(true|false)\b", source_line
    ):
        return " A text stands in quotes."
    return " A setting is written as: name = value."


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    """Yield the settings of a table by dotted key; an empty table yields its own key with True."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            if not value:
                yield key, True
            yield from _flatten(value, f"{key}.")
        else:
            yield key, value


def _key_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted keys of tables and settings with their lines, ignoring the inside of multi-line strings."""
    table, quote = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if not quote:
            if match := _TABLE_HEADER.fullmatch(line):
                table = f"{_normalize_key(match[1])}."
                yield table[:-1], number
            elif match := _KEY_LINE.match(line):
                yield f"{table}{_normalize_key(match[1])}", number
        for mark in _LONG_QUOTES.findall(line):
            quote = "" if quote == mark else quote or mark


def _normalize_key(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _is_secret(key: str, value: object) -> bool:
    texts = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
    return is_secret_name(key) or any(has_secret(each) or has_secret(f'{key} = "{each}"') for each in texts)
