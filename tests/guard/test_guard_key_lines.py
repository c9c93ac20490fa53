"""Lines from the middle of a private key, with no marker beside them. All keys are made here, at run time.

The examples were written before the rule, and so were the bounds.
"""

import base64
import hashlib
import json
import random
import string

import pytest

from line_prefixes import PREFIXES
from ricordo.guard import Redactor, has_secret

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(range(32)))
B64 = string.ascii_letters + string.digits + "+/"
_SOURCE = random.Random(29)
LINES = {width: ["".join(_SOURCE.choices(B64, k=width)) for _ in range(12)] for width in (64, 70)}
LAST = "".join(_SOURCE.choices(B64, k=22)) + "=="
AFTER = "And then we talked about the extraordinary weather."


def block(kind: str, lines: list[str]) -> str:
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])


def prefixed(prefix: str, lines: list[str]) -> str:
    return "\n".join(prefix.format(n=number) + line for number, line in enumerate(lines, start=7))


@pytest.mark.parametrize("width", LINES)
@pytest.mark.parametrize("kind", ["", *PREFIXES])
def test_lines_from_the_middle_of_a_private_key_leave(kind: str, width: int) -> None:
    for shown in (
        LINES[width][:2],
        LINES[width][3:9],
        [*LINES[width][8:], LAST],
        [LINES[width][0][30:], *LINES[width]],
    ):
        text = f"It printed:\n{prefixed(PREFIXES.get(kind, ''), shown)}\n{AFTER}"
        redacted = REDACTOR.redact(text)
        assert [line for line in shown if line in redacted.text] == []
        assert [mark.type for mark in redacted.marks] == ["private-key"]
        assert redacted.text.startswith("It printed:\n")
        assert redacted.text.endswith(f"\n{AFTER}")
        assert REDACTOR.redact(redacted.text).text is redacted.text


WRITTEN = {
    "json": lambda lines: json.dumps({"out": "\n".join(lines) + "\n[exit code 0]"}),
    "windows": "\r\n".join,
    "code": lambda lines: "\n".join(f'    "{line}\\n" +' for line in lines),
    "list": lambda lines: "\n".join(f'  "{line}",' for line in lines),
    "yaml": lambda lines: "key: |\n" + "\n".join(f"    {line}" for line in lines),
    "table": lambda lines: "\n".join(f"| {line} |" for line in lines),
    "html": lambda lines: "<pre>" + "\n".join(lines) + "</pre>",
    "whole text": "\n".join,
}


@pytest.mark.parametrize("way", WRITTEN)
def test_lines_of_a_key_that_are_written_in_another_way_leave_too(way: str) -> None:
    lines = LINES[64][2:7]
    redacted = REDACTOR.redact(WRITTEN[way](lines)).text
    assert [line for line in lines if line in redacted] == []


def _sums(name: str) -> list[bytes]:
    return [hashlib.new(name, str(number).encode()).digest() for number in range(8)]


PICTURE = base64.b64encode(random.Random(3).randbytes(900)).decode()
HARMLESS = {
    "certificate": block("CERTIFICATE", [*LINES[64], LAST]),
    "certificates after each other": "\n".join([block("CERTIFICATE", LINES[64])] * 2),
    "public key": f"Here it is:\n{block('PUBLIC KEY', LINES[64][:6])}\nkeep it",
    "signature": block("PGP SIGNATURE", ["Version: 2", "", *LINES[64][:8], LAST, "=aB3d"]),
    "message": block("PGP MESSAGE", ["", *LINES[64][:8], LAST, "=aB3d"]),
    "certificate, searched": prefixed("tls/chain.pem:{n}:", block("CERTIFICATE", LINES[64]).split("\n")),
    "mail": "\n".join(PICTURE[at : at + 76] for at in range(0, len(PICTURE), 76)),
    "picture": f"data:image/png;base64,{PICTURE}",
    "sums of files": "\n".join(f"{each.hex()}  file-{at}.tar.gz" for at, each in enumerate(_sums("sha256"))),
    "sums alone": "\n".join(each.hex() for each in _sums("sha256")),
    "sums in capitals": "\n".join(each.hex().upper() for each in _sums("sha256")),
    "integrity": "\n".join(f"  integrity sha384-{base64.b64encode(each).decode()}" for each in _sums("sha384")),
    "names and sums": "\n".join(
        f"{name}: {base64.b64encode(each).decode()}" for name, each in zip("abcdefgh", _sums("sha384"), strict=True)
    ),
    "one line": f"its id is\n{LINES[64][0]}\nand that is all",
    "words": "\n".join(["TheQuickBrownFoxJumpsOverTheLazyDogAndRunsAwayFromItVeryQuickly1"] * 1 + ["x"] * 5),
    "rule": "\n".join(["=" * 64, "+" * 64, "/" * 64]),
    "paths": "\n".join(f"src/main/java/org/example/very/long/path/to/a/File{n:02d}/of/Something12" for n in range(9)),
    "repeated": "\n".join(["A1b2" * 16] * 4),
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_only_looks_like_lines_of_a_key_stays(kind: str) -> None:
    assert not has_secret(HARMLESS[kind])


def test_lines_of_a_private_key_after_a_certificate_leave() -> None:
    text = f"{HARMLESS['certificate']}\n\n" + "\n".join(LINES[70][:4])
    redacted = REDACTOR.redact(text).text
    assert redacted.startswith(HARMLESS["certificate"])
    assert not any(line in redacted for line in LINES[70][:4])
