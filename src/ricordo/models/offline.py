"""The offline model: it answers questions with quotations from memory, and calls `remember` on a user's request.

Questions and requests to remember are recognized narrowly, in eight languages. Nothing is invented, and no data leaves
the machine.

Invariant: a question is never a request to remember.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ricordo.language import split_sentences
from ricordo.language.packs import pack_phrases
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, get_mark, with_mark
from ricordo.models import Reply
from ricordo.models.config import OFFLINE
from ricordo.models.wrappers import WholeReplies

__all__ = [
    "NOTED_REPLY",
    "UNKEPT_REPLY",
    "UNKNOWN_REPLY",
    "OfflineModel",
    "ends_with_question",
    "extract_remember_request",
    "is_question",
]


_QUESTION_MARK = lazy_compile(r"[？؟]|\?(?=[\"'”’»)\]*_]*(?:\s|\Z))")
_QUESTION_END = lazy_compile(lambda: rf"(?:[?？؟]|{pack_phrases('question_ending')})[\"'”’»」』)\]*_。.!\s]*\Z")
_STATEMENT_END = lazy_compile(r"[.!…。！:][\"'”’»)\]*_\s]*\Z")


def _polite(pattern: str) -> str:
    """Return a pattern with the polite words that may stand before it."""
    return rf"\s*(?:(?:{pack_phrases('polite_opening')})\b[\s,]*)*(?:{pattern})"


_QUESTION_OPENING = lazy_compile(
    lambda: _polite(rf"(?:{pack_phrases('question_opening')})(?:['’]s)?\b|{pack_phrases('question_opening_verb')}"),
    re.IGNORECASE,
)
_INVERTED_QUESTION = lazy_compile(lambda: _polite(pack_phrases("inverted_question")), re.IGNORECASE)
_REQUEST = lazy_compile(lambda: _polite(pack_phrases("memory_request")), re.IGNORECASE | re.DOTALL)
_REQUEST_AFTER = lazy_compile(lambda: rf"(?:{pack_phrases('memory_request_ending')})[。!！\s]*\Z")


def _remember_pattern() -> str:
    """Return the pattern of a request to remember, with the group `content`.

    Some verbs have other meanings ("Note the irony"), and need more behind them.
    """
    that = rf"(?:{pack_phrases('remember_that')})\b\s*[:,]?\s*|(?:{pack_phrases('remember_of')})\s+"
    verb = (
        rf"(?:{pack_phrases('remember_verb')})(?:\s+(?:{pack_phrases('remember_please')}))?(?:\s*[,:]\s*|\s+)"
        rf"(?:{that}|{pack_phrases('remember_elision')})?"
    )
    clause = (
        rf"(?:{pack_phrases('remember_clause_verb')})(?:\s+(?:{pack_phrases('remember_self')}))?(?:\s*:\s*"
        rf"|\s*,?\s+(?:{pack_phrases('remember_clause_that')})\b\s*[:,]?\s*"
        rf"|\s+(?:{pack_phrases('remember_elision')}))"
    )
    question = (
        rf"(?:{pack_phrases('question_word')})\b(?!\s+(?:{pack_phrases('clause_subject')})\b[^.]*,\s)"
        rf"|{pack_phrases('question_word_joined')}"
    )
    return _polite(rf"{verb}|{clause}|{pack_phrases('remember_joined')}") + rf"(?!{question})(?P<content>\S.*)"


_REMEMBER = lazy_compile(_remember_pattern, re.IGNORECASE | re.DOTALL)
_REMEMBER_AFTER = lazy_compile(
    lambda: rf"\s*(?P<content>\S.*?)(?:{pack_phrases('remember_ending')})[。!！\s]*", re.DOTALL
)
_MEMORY_OF = lazy_compile(lambda: pack_phrases("memory_of"), re.IGNORECASE)


def is_question(text: str) -> bool:
    """Return whether a text asks for an answer: it is a question, or a request to tell or show something."""
    if any(pattern.search(text) for pattern in (_QUESTION_MARK, _QUESTION_END, _REQUEST_AFTER)):
        return True
    if _REQUEST.match(text) or _INVERTED_QUESTION.match(text):
        return True
    return _QUESTION_OPENING.match(text) is not None and not _STATEMENT_END.search(text)


def ends_with_question(text: str) -> bool:
    """Return whether the last sentence of a text is a question."""
    sentences = list(split_sentences(text))
    return is_question(sentences[-1].text if sentences else text)


def extract_remember_request(text: str) -> str | None:
    """Return the content that a text asks to remember; None if it contains no such request, or is a question."""
    if _QUESTION_END.search(text):
        return None
    match = _REMEMBER.fullmatch(text) or _REMEMBER_AFTER.fullmatch(text)
    if match is None:
        return None
    content = match["content"].strip()
    return None if _MEMORY_OF.match(content) else content


NOTED_REPLY = "Noted."
UNKNOWN_REPLY = "Not in memory."
UNKEPT_REPLY = "Nothing of this is kept."


class OfflineModel(WholeReplies):
    """A chat model that answers from memory, without a language model."""

    def __init__(self, answer: Callable[[str], Awaitable[str]], *, keeps: bool = True) -> None:
        """Answer with the result of `answer` for a text; an empty result means that memory holds nothing about it.

        `keeps` says whether the conversation is recorded.
        """
        self.is_recorded = keeps
        self._answer = answer
        self.name = OFFLINE
        self.window: int | None = None

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of memory to the last message."""
        del schema
        # Marked user messages, such as reminders, get no answer.
        unmarked = [each for each in messages if each.role != "user" or get_mark(each) is None]
        last = unmarked[-1] if unmarked else Message(role="user")
        if last.role == "tool":
            return _quote_memory("\n".join(result.text for result in last.tool_results))
        text = next((each.text for each in reversed(unmarked) if each.role == "user"), "")
        request = extract_remember_request(text)
        if request is not None and any(tool.name == "remember" for tool in tools):
            call = ToolCall(id=f"offline-{len(messages)}", name="remember", arguments=json.dumps({"content": request}))
            return Reply(message=Message(role="assistant", parts=(call,)), stop="tools", model=OFFLINE)
        return _quote_memory(await self._answer_text(text))

    async def _answer_text(self, text: str) -> str:
        answer = await self._answer(text)
        if is_question(text):
            return answer or UNKNOWN_REPLY
        return answer or NOTED_REPLY if self.is_recorded else "\n".join(filter(None, (UNKEPT_REPLY, answer)))


def _quote_memory(text: str) -> Reply:
    # Mark the quotation from memory, so that it is not remembered again.
    return Reply(message=with_mark(Message(role="assistant", parts=(Text(text=text),)), "memory"), model=OFFLINE)
