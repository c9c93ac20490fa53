"""Models that write summaries by a simple rule, well formed, and as long as they are allowed to be."""

import re
from collections.abc import Iterator

from ricordo.guard import parse_fence
from ricordo.language import split_sentences
from ricordo.messages.tokens import estimate_text
from ricordo.testing import RecordedRequest, Say, ScriptedModel

__all__ = ["writer"]

_BLOCK = re.compile(r"<conversation note=.*</conversation>", re.DOTALL)
_ALLOWED = re.compile(r"Take at most (\d+) tokens")
_CODE = re.compile(r"\b[a-z]+-\d{4}\b")
_NOT_NEW = re.compile(r"\[calls |\[[ISAN]\d+\] ")
_LONGEST = 300
_FRAME = 60


def writer(*, careful: bool) -> ScriptedModel:
    """Return a model that sums up by the first sentence of each message, or, `careful`, by each sentence and each line
    of a tool's answer that holds a name with a number."""

    def answer(request: RecordedRequest) -> Say:
        text = request.messages[-1].text
        block, allowed = _BLOCK.search(text), _ALLOWED.search(text)
        items = parse_fence(block[0]) or () if block else ()
        room = int(allowed[1]) - _FRAME if allowed else _FRAME
        chosen = _chosen(items, careful=careful)
        lines = "\n".join(_fitting(chosen, room)) or "None"
        return Say(f"## SESSION INTENT\nNone\n## SUMMARY\n{lines}\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone")

    return ScriptedModel(answer, name="writer", window=200_000)


def _chosen(items: tuple[str, ...], *, careful: bool) -> list[str]:
    found = []
    for item in items:
        if careful:
            found += [each for each in _lines(item) if _CODE.search(each)]
        elif not item.startswith("["):
            found += _lines(item)[:1]
    return list(dict.fromkeys(found))


def _lines(item: str) -> list[str]:
    """Return the sentences of an item, of a tool's answer its lines; of a call and of the extract so far none."""
    if _NOT_NEW.match(item):
        return []
    pieces = item.split("\n")[1:] if item.startswith("[") else [each.text for each in split_sentences(item)]
    return [" ".join(piece.split())[:_LONGEST].replace('"', "'") for piece in pieces if piece.strip()]


def _fitting(lines: list[str], room: int) -> Iterator[str]:
    for line in lines:
        room -= estimate_text(f"- {line}\n")
        if room < 0:
            return
        yield f"- {line}"
