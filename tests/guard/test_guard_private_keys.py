"""Private keys whose lines were prefixed, cut off or quoted. All keys are made here, at run time."""

import json
import random
import string

import pytest

from line_prefixes import PREFIXES
from ricordo.guard import Redactor, cut, cut_start, has_secret

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(range(32)))
B64 = string.ascii_letters + string.digits + "+/"
KIND = "RSA PRIVATE " + "KEY"
_SOURCE = random.Random(17)
MATERIAL = ["".join(_SOURCE.choices(B64, k=64)) for _ in range(25)]
LAST = "QmFzZTY0" + "=="
KEY = [f"-----BEGIN {KIND}-----", *MATERIAL, LAST, f"-----END {KIND}-----"]
AFTER = "And then we talked about the extraordinary weather."


def holds(text: str) -> list[str]:
    return [line for line in [*MATERIAL, LAST] if line in text]


@pytest.mark.parametrize("kind", PREFIXES)
def test_a_prefix_of_each_line_does_not_hide_a_private_key(kind: str) -> None:
    prefix = PREFIXES[kind]
    text = "\n".join(prefix.format(n=number) + line for number, line in enumerate(KEY, start=1))
    redacted = REDACTOR.redact(f"Here it is:\n{text}\n{AFTER}")
    assert holds(redacted.text) == []
    assert [mark.type for mark in redacted.marks] == ["private-key"]
    assert redacted.text.startswith("Here it is:\n")
    assert redacted.text.endswith(f"]\n{AFTER}")
    assert REDACTOR.redact(redacted.text).text is redacted.text


@pytest.mark.parametrize("kind", PREFIXES)
def test_a_prefixed_private_key_that_is_cut_off_leaves_as_far_as_it_goes(kind: str) -> None:
    lines = [PREFIXES[kind].format(n=number) + line for number, line in enumerate(KEY, start=1)]
    for shown in (lines[:9], lines[:2], lines[9:], lines[20:]):
        redacted = REDACTOR.redact("\n".join(["Before.", *shown, "", AFTER]))
        assert holds(redacted.text) == []
        assert redacted.text.startswith("Before.\n")
        assert redacted.text.endswith(AFTER)


def test_the_rest_of_a_private_key_is_found_by_its_end() -> None:
    for separator in ("\n", "\r\n", "\\n", "\\\\n"):
        text = separator.join(KEY[7:])
        redacted = REDACTOR.redact(f"lines 8 to 28 of the file:\n{text}\nThat was it.")
        assert holds(redacted.text) == []
        assert redacted.text.startswith("lines 8 to 28 of the file:\n[secret:private-key:")
        assert redacted.text.endswith("]\nThat was it.")


def test_a_private_key_in_json_of_json_with_line_numbers_is_found() -> None:
    numbered = "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(KEY, start=1))
    text = json.dumps({"result": json.dumps({"text": numbered})})
    assert holds(REDACTOR.clean(text)) == []


def test_the_private_lines_of_a_putty_key_leave() -> None:
    head = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 2\n"
    public = "AAAAC3NzaC1lZDI1NTE5AAAAIPublicPartOfTheKeyThatMayBeShown1234567\nAAAA\n"
    text = f"{head}{public}Private-Lines: 4\n" + "\n".join(MATERIAL[:4]) + "\nPrivate-MAC: 0a1b"
    cleaned = REDACTOR.clean(text)
    assert holds(cleaned) == []
    assert cleaned.startswith(f"{head}{public}Private-Lines: 4[secret:private-key:")


def test_a_key_of_ssh2_leaves() -> None:
    kind = "SSH2 ENCRYPTED PRIVATE " + "KEY"
    text = f'---- BEGIN {kind} ----\nComment: "me"\n' + "\n".join(MATERIAL[:5]) + f"\n---- END {kind} ----\nDone."
    redacted = REDACTOR.redact(text)
    assert holds(redacted.text) == []
    assert redacted.text.endswith("]\nDone.")
    assert len(redacted.marks) == 1


def test_what_is_not_private_stays_with_prefixes_too() -> None:
    for kind in ("CERTIFICATE", "PUBLIC KEY"):
        lines = [f"-----BEGIN {kind}-----", *MATERIAL[:5], f"-----END {kind}-----"]
        for prefix in PREFIXES.values():
            assert not has_secret("\n".join(prefix.format(n=number) + line for number, line in enumerate(lines)))
    picture = "\n".join("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4" for _ in range(20))
    assert not has_secret(f"image:\n{picture}\n")
    assert not has_secret("The file ends with -----END PRIVATE KEY-----, as all of them do.")


def test_a_cut_leaves_no_part_of_a_secret_on_either_side() -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    for secret in (token, "\n".join(KEY[:12] + KEY[-1:])):
        text = f"{'before ' * 30}{secret}{' after' * 30}"
        begin, end = text.index(secret), text.index(secret) + len(secret)
        for position in (begin + 1, begin + 4, begin + 20, end - 20, end - 1):
            assert cut(text, position) == text[:begin]
            assert cut_start(text, position) == text[end:]
        for position in (1, begin, end, len(text) - 1):
            assert cut(text, position) == text[:position]
            assert cut_start(text, position) == text[position:]
