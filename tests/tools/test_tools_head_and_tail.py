"""The head and the tail of an output: whole lines, in bounded memory, and no half of a secret."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.agent.tools.shell import HeadTailBuffer
from ricordo.guard import Redactor

SECRET = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
BODY = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + chr(97 + at) * 12 for at in range(6))
KEY = f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----"


def kept(chunks: Iterable[bytes], most: int) -> str:
    output = HeadTailBuffer(most)
    for chunk in chunks:
        output.add(chunk)
    return output.text()


def pieces(text: str) -> set[str]:
    return {text[at : at + 8] for at in range(len(text) - 7)}


@given(st.binary(max_size=300), st.integers(2, 120), st.lists(st.integers(0, 300), max_size=6))
def test_what_is_kept_are_whole_lines_or_all_of_it(data: bytes, most: int, cuts: list[int]) -> None:
    places = sorted({0, *cuts, len(data)})
    chunks = [data[at:to] for at, to in pairwise(places)]
    text = kept(chunks, most)
    assert text == kept([data], most), "however it comes"
    if len(data) <= most // 2 * 2:
        assert text == data.decode("utf-8", "replace")
        return
    head, _, tail = text.partition("[… ")
    tail = tail.partition("…]\n")[2]
    assert head == "" or head.endswith(("\n", "\r"))
    lines = data.replace(b"\r", b"\n").decode("utf-8", "replace")
    assert lines.startswith(head.replace("\r", "\n").removesuffix("\n"))
    assert tail == "" or lines.endswith("\n" + tail.replace("\r", "\n"))
    assert len(head.encode()) + len(tail.encode()) <= 4 * most


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize("secret", [SECRET, KEY], ids=["token", "key of several lines"])
@given(at=st.integers(0, 260), before=st.sampled_from(["", " ", "\n", "KEY="]), size=st.sampled_from([400, 700, 1_000]))
def test_no_piece_of_a_secret_at_a_cut_is_kept(secret: str, at: int, before: str, size: int) -> None:
    filler = "some words\n" * 200
    # at the end of the head, or at the beginning of the tail
    for text in (filler[: size // 2 - at] + before + secret + "\n" + filler,
                 filler + before + secret + "\n" + filler[: max(size // 2 - at, 0)]):  # fmt: skip
        found = Redactor(bytes(32)).clean(kept([text.encode()], size))
        body = secret.partition("KEY-----\n")[2].partition("\n-----END")[0] or secret
        assert pieces(body.replace("\n", "")) & pieces(found) == set()


def test_a_line_that_is_too_long_is_left_out_whole_and_that_is_said() -> None:
    assert kept([b"x" * 1_000], 100) == "[… 1,000 bytes left out, a line that is too long among them …]\n"
    assert kept([b"first\n" + b"x" * 1_000 + b"\nlast\n"], 100) == "first\n[… 1,001 bytes left out …]\nlast\n"
    assert kept([b"1%\r" * 400], 100).startswith("1%\r1%\r")
