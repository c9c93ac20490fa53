"""The offline model: it answers questions with quotations from memory, and calls `remember` on a user's request.

Questions and requests to remember are recognized narrowly, in eight languages. Nothing is invented, and no data leaves
the machine.

Invariant: a question is never a request to remember.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ricordo.language import split_sentences
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, get_mark, with_mark
from ricordo.models import Reply
from ricordo.models.wrappers import WholeReplies

__all__ = [
    "NOTED_REPLY",
    "OFFLINE",
    "UNKEPT_REPLY",
    "UNKNOWN_REPLY",
    "OfflineModel",
    "ends_with_question",
    "extract_remember_request",
    "is_question",
]


_POLITE_OPENING = (
    r"\s*(?:(?:please|pls|hey|hi|hello|ok(?:ay)?|so|also|and|now|just|well|bitte|und|also|per favore|por favor"
    r"|s['’]il (?:te|vous) pla[iî]t|e|et|y)\b[\s,]*)*"
)
_QUESTION_WORD = (
    r"(?:who|whom|whose|what|which|when|where|why|how|whether|if|wer|wen|wem|was|wo|wohin|woher|wann|wie|warum|wieso"
    r"|weshalb|welche[rsmn]?|ob|chi|che cosa|cosa|dove|quando|perch[eé]|come|quale|quali|quanto|qui|quoi|quand|où"
    r"|comment|pourquoi|quel(?:le)?s?|combien|si|qu[ié]|qui[eé]n|qu[eé]|cu[aá]l(?:es)?|cu[aá]ndo|d[oó]nde|c[oó]mo|cu[aá]nt[oa]s?"
    r"|quem|qual|quais|onde|porqu[eê])"
)
_QUESTION_MARK = lazy_compile(r"[？؟]|\?(?=[\"'”’»)\]*_]*(?:\s|\Z))")
_QUESTION_END = lazy_compile(r"(?:[?？؟]|吗|嗎|呢|ますか|ですか|たか)[\"'”’»」』)\]*_。.!\s]*\Z")
_STATEMENT_END = lazy_compile(r"[.!…。！:][\"'”’»)\]*_\s]*\Z")
_QUESTION_OPENING = lazy_compile(
    _POLITE_OPENING
    + r"(?:(?:who|whom|whose|what|which|when|where|why|how|wer|wen|wem|was|wo|wann|wie|warum|wieso|welche[rsmn]?"
    r"|chi|dove|quando|perch[eé]|come|quale|quali|quanto|qui|quand|où|comment|pourquoi|quel(?:le)?s?|combien|qui[eé]n|qué"
    r"|cuál(?:es)?|cuándo|dónde|cómo|cuánt[oa]s?|quem|qual|quais|onde)(?:['’]s)?\b"
    r"|(?:is|are|was|were|do|does|did)\b(?!\s+not\b|n['’]t)|any idea\b)",
    re.IGNORECASE,
)
_INVERTED_QUESTION = lazy_compile(
    _POLITE_OPENING
    + r"(?:(?:who|what|which|when|where|why|how)(?:\s+\w+)?(?:['’]s|\s+(?:is|are|was|were|do|does|did|can|should))"
    r"\s+(?:i|you|we|he|she|it|they|there|the|a|an|my|our|your|this|that|his|her|their)\b"
    r"|(?:can|could|would|will|should|shall|have|has|had|may|do|does|did|is|are|was|were|am|don['’]t)"
    r"\s+(?:i|you|we|he|she|it|they|there|any\w*|some(?:one|body))\b"
    r"|(?:i\s+(?:want|need|would like)|i['’]d like)\s+to\s+know\b|do you know\b)",
    re.IGNORECASE,
)
_REQUEST = lazy_compile(
    _POLITE_OPENING + r"(?:(?:tell|show|give|read|find|get|remind)\s+(?:me|us)\b(?!\s+(?:to|that)\b)"
    r"|(?:list|show|explain|describe|summari[sz]e|recall|look up|search)\b(?!\s+(?:of|is|are|was|were)\b)\s+\S"
    r"|let (?:me|us) (?:know|see)\b"
    r"|(?:sag(?:e|t|en sie)?|zeig(?:e|t|en sie)?|nenn(?:e|t|en sie)?|gib|gebt|erklär(?:e|t|en sie)?|verrat(?:e)?)\s+"
    r"(?:mir|uns)\b(?!,?\s+dass\b)|erinner(?:e|t|n sie)? (?:mich|uns) (?:an\b|"
    + _QUESTION_WORD
    + r"\b)|nenne\s+\S|liste\s+\S+.*\sauf\b"
    r"|(?:dimmi|dicci|mostrami|mostraci|elenca|elencami|ricordami|spiegami|dammi|fammi (?:sapere|vedere))\b"
    r"(?!\s+(?:di|che)\s+\w+[aei]re\b)"
    r"|(?:dis|dites|montre[sz]?|rappelle|rappelez|explique[z]?|donne[z]?|cite[z]?)[-\s](?:moi|nous)\b(?!\s+(?:que|de)\b)"
    r"|fais[-\s]moi (?:voir|savoir)\b|liste[sz]?(?:[-\s]moi)?\s+(?:les|tous|toutes|mes|nos)\b"
    r"|(?:dime|dinos|dígame|muéstra(?:me|nos)|enséña(?:me|nos)|recuérda(?:me|nos)|explíca(?:me|nos)|dame)\b"
    r"(?!\s+que\b)|lista\s+(?:los|las|todos|todas|mis|nuestr[oa]s|i|le|gli|tutti|tutte|os|as)\b"
    r"|(?:diz-me|diga-me|me diga|me diz|mostra-me|mostre-me|me mostre|lembra-me|lembre-me|explica-me|explique-me)\b"
    r"(?!\s+que\b)"
    r"|(?:请|請)?(?:告诉我|告訴我|给我看|显示|列出|解释))",
    re.IGNORECASE | re.DOTALL,
)
_REQUEST_AFTER = lazy_compile(r"(?:教えて|見せて)(?:ください|下さい|ほしい|欲しい|くれ|ね|よ)?[。!！\s]*\Z")
_REMEMBER_VERB = (
    # Verbs that the content may follow directly.
    r"(?:(?:always\s+)?remember|(?:don['’]t|do not|never) forget|keep in mind|bear in mind|memori[sz]e"
    r"|merk(?:e|t)?\s+(?:dir|euch)"
    r"|merken sie sich|denk(?:e|t)?\s+dara?n|vergiss(?:\s+(?:bitte\s+)?nicht)|ricordati|non dimenticare|recuérdalo"
    r"|souviens[-\s]toi|souvenez[-\s]vous|n['’]oublie[sz]?\s+pas|no olvides|não (?:te )?esque[çc]as?)"
    r"(?:\s+bitte)?(?:\s*[,:]\s*|\s+)(?:(?:that|this|che|que|dass|de que)\b\s*[:,]?\s*|(?:di|de|an)\s+|qu['’])?"
)
_REMEMBER_CLAUSE = (
    # Verbs with other meanings, such as "Note the irony" or "Ricorda suo padre".
    r"(?:(?:take\s+|make\s+(?:a\s+)?)?note|notiere?|notier dir|ricorda|annota|tieni a mente"
    r"|recuerda|anota|ten en cuenta"
    r"|note[sz]?|retiens|retenez|rappelle[-\s]toi|lembra(?:-te)?|lembre-se)"
    r"(?:\s+(?:to self|bitte|de))?(?:\s*:\s*|\s*,?\s+(?:that|che|que|dass)\b\s*[:,]?\s*|\s+qu['’])"
)
_REMEMBER = lazy_compile(
    _POLITE_OPENING + rf"(?:{_REMEMBER_VERB}|{_REMEMBER_CLAUSE}|覚えて(?:おいて)?(?:ください|下さい)?\s*[\s:：、,]\s*"
    r"|(?:请|請)?(?:记住|記住|记下|記下)(?![了吗嗎没沒])\s*[:：,，]?\s*)"
    rf"(?!{_QUESTION_WORD}\b(?!\s+(?:we|you|i|they|he|she|it)\b[^.]*,\s)|什么|什麼|谁|誰|哪|怎么|多少)(?P<content>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER_AFTER = lazy_compile(
    r"\s*(?P<content>\S.*?)(?:ということ|こと|の)?[をと]、?覚えて(?:おいて)?(?:ください|下さい|ね|くれ)?[。!！\s]*",
    re.DOTALL,
)
_MEMORY_OF = lazy_compile(
    r"(?:(?:that|the|this)\s+)?(?:one |first |last )?(?:time|times|day|days|night|evening|morning"
    r"|week|weekend|summer|year)"
    r"\s+(?:when|we|i|you|he|she|they)\b|me\W*\Z|us\W*\Z",
    re.IGNORECASE,
)


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
    found = _REMEMBER.fullmatch(text) or _REMEMBER_AFTER.fullmatch(text)
    if found is None:
        return None
    content = found["content"].strip()
    return None if _MEMORY_OF.match(content) else content


OFFLINE = "offline"
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
        spoken = [each for each in messages if each.role != "user" or get_mark(each) is None]
        last = spoken[-1] if spoken else Message(role="user")
        if last.role == "tool":
            return _quote_memory("\n".join(result.text for result in last.tool_results))
        text = next((each.text for each in reversed(spoken) if each.role == "user"), "")
        wanted = extract_remember_request(text)
        if wanted is not None and any(tool.name == "remember" for tool in tools):
            call = ToolCall(id=f"offline-{len(messages)}", name="remember", arguments=json.dumps({"content": wanted}))
            return Reply(message=Message(role="assistant", parts=(call,)), stop="tools", model=OFFLINE)
        return _quote_memory(await self._answer_text(text))

    async def _answer_text(self, text: str) -> str:
        found = await self._answer(text)
        if is_question(text):
            return found or UNKNOWN_REPLY
        return found or NOTED_REPLY if self.is_recorded else "\n".join(filter(None, (UNKEPT_REPLY, found)))


def _quote_memory(text: str) -> Reply:
    # Mark the quotation from memory, so that it is not remembered again.
    return Reply(message=with_mark(Message(role="assistant", parts=(Text(text=text),)), "memory"), model=OFFLINE)
