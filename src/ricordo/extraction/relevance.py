"""Relevance: a small linear model says whether a statement is worth remembering, as which kind, and by which cues.

The features of a statement are its acts, its form, its place in the message, what stood before it, and its words and
characters as hashes. `python benchmarks/relevance.py train` fits the weights on the labelled conversations in
`benchmarks/learning`; they are one byte each in `relevance.bin`, which is read at the first use.

Invariants: pure and deterministic; linear in the text; a score is a probability in 0..1.
"""

import math
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import combinations, pairwise
from operator import mul
from zlib import crc32

from ricordo.extraction.statements import YES_NO_QUESTION, Statement, is_next_step_question
from ricordo.language import Language, find_dates, is_unsegmented, points_back
from ricordo.language.packs import WordKind, pack_words
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "KEEP_BITS",
    "KINDS",
    "KIND_BITS",
    "Relevance",
    "RelevanceModel",
    "StatementContext",
    "judge_relevance",
    "weigh_features",
]


KINDS = ("fact", "decision", "convention", "preference", "lesson")
"""The kinds that the model tells apart, in the order of its weights."""
KEEP_BITS, KIND_BITS = 17, 13
"""How many bits of a feature's hash choose its weight: for the score, and for each kind."""
_MAX_WORDS = 60
_MAX_CUES = 3
_MAX_COUNT = 6
_MIN_SHOWN_CHARS = 4
_CUE_WORDS = {
    "act remember": "a request to remember",
    "act convention": "a rule",
    "act decision": "a decision",
    "act preference": "a taste",
    "act lesson": "a lesson",
    "act correction": "a correction",
    "act goal": "a plan",
    "act fact": "a lasting fact",
    "act self": "about the speaker",
    "answers": "the answer to a question",
    "number": "a number",
    "name": "a name",
    "code": "code or a path",
    "item": "an item of a list",
    "lasting_word": "a word for what always holds",
    "role_word": "what somebody or something is or does",
}
_GRAM_SHARES = {"word": 3.0, "part": 1.5, "asked": 1.5}


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementContext:
    """What a statement is judged with: its index among the sentences of its message, and the question before it.

    `count` is how many sentences the message has; `by_user` is false for a statement of the assistant; `previous` and
    `following` are its neighbours in the message.
    """

    statement: Statement
    index: int
    count: int
    by_user: bool
    previous: Statement | None = None
    following: Statement | None = None
    question: Statement | None = None


_JOINED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = lazy_compile(
    rf"`[^`]*`|[{_JOINED}]+|[^\W{_JOINED}]+(?:[-_./:@'’&+\\]+[^\W{_JOINED}]+)*(?:\+\+|#)?|[?？!！…:：()（）\"“”«»「」—–;]"
)
_CODE = lazy_compile(r"`|\w[/_]\w|\w\.\w|\w\(\)|--\w|[a-z][A-Z]|\\")
_FORMS = (
    ("number", lazy_compile(r"\d")),
    ("code", _CODE),
    ("name", lazy_compile(r"(?<=[a-zà-ž,;:] )[A-ZÀ-Ž][\w-]+")),
    ("quoted", lazy_compile(r"[\"“”«»„「」『』]")),
)
_ENDINGS = ("?", "!", "...", "…", ":")
_WORD_CLASSES: tuple[WordKind, ...] = ("passing_word", "lasting_word", "hearsay_word", "role_word")
_JOINED_LANGUAGES: frozenset[Language] = frozenset({"zh", "ja", "ko"})
_REFERENCE_DAY = date(2000, 1, 1)
_QUOTED = lazy_compile(r"[\"“”«»„「」『』]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Relevance:
    """The judgement of a statement: how likely it is worth remembering, its likeliest kind, and its strongest cues."""

    score: float
    kind: str
    cues: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RelevanceModel:
    """The weights by the hash of a feature: of the score, and of each kind; each is a byte times its scale."""

    keep: memoryview
    keep_scale: float
    kinds: tuple[memoryview, ...]
    kind_scale: float

    def judge(self, context: StatementContext) -> Relevance:
        """Return how likely the statement is worth remembering, as what, and why."""
        features = weigh_features(context)
        values = features.values()
        hashes = [crc32(name.encode("utf-8", "surrogatepass")) for name in features]
        # `map` over functions of the interpreter takes a third of the time of an expression for each feature
        shares = list(map(mul, values, map(self.keep.__getitem__, [hashed & _KEEP_MASK for hashed in hashes])))
        places = [hashed & _KIND_MASK for hashed in hashes]
        totals = [sum(map(mul, values, map(weights.__getitem__, places))) for weights in self.kinds]
        best = max(range(len(KINDS)), key=totals.__getitem__)
        strongest = sorted((-share, name) for share, name in zip(shares, features, strict=True) if share > 0)
        return Relevance(
            score=_logistic(sum(shares) * self.keep_scale),
            kind=KINDS[best],
            cues=_describe_first(name for _, name in strongest),
        )


_KEEP_MASK, _KIND_MASK = (1 << KEEP_BITS) - 1, (1 << KIND_BITS) - 1


def _logistic(total: float) -> float:
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 3)


def _describe(name: str) -> str:
    """Return a feature in plain words; "" for one that says nothing to a reader."""
    group, _, rest = name.partition(" ")
    cue = rest.partition(" ")[2]
    if group == "word":
        return f"“{cue}”" if len(cue) >= _MIN_SHOWN_CHARS and cue.isalpha() else ""
    return _CUE_WORDS.get(cue, "")


def _describe_first(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first features that say something to a reader, in plain words and each once."""
    cues: dict[str, None] = {}
    for name in names:
        if cue := _describe(name):
            cues[cue] = None
            if len(cues) == _MAX_CUES:
                break
    return tuple(cues)


def judge_relevance(context: StatementContext) -> Relevance:
    """Judge a statement by the weights of the package."""
    return _load_model().judge(context)


@cache
def _load_model() -> RelevanceModel:
    data = files("ricordo.extraction").joinpath("relevance.bin").read_bytes()
    header, _, weights = data.partition(b"\n")
    keep_scale, kind_scale = map(float, header.split())
    table = memoryview(weights).cast("b")
    start, step = 1 << KEEP_BITS, 1 << KIND_BITS
    return RelevanceModel(
        keep=table[:start],
        keep_scale=keep_scale,
        kinds=tuple(table[start + step * at : start + step * (at + 1)] for at in range(len(KINDS))),
        kind_scale=kind_scale,
    )


def weigh_features(context: StatementContext) -> dict[str, float]:
    """Return the features of a statement with their values; all n-grams of a group share a fixed sum of squares.

    A statement of the assistant has each feature twice: as anybody's, and as the assistant's, which corrects it.
    """
    tokens = _split_tokens(context.statement.text)
    groups = {"cue": _iter_cues(context, tokens), "word": _iter_word_grams(tokens), "part": _iter_parts(tokens)}
    if context.question and not context.index:
        groups["asked"] = _iter_word_grams(_split_tokens(context.question.text))
    features: dict[str, float] = {}
    for group, grams in groups.items():
        names = dict.fromkeys(grams)
        value = _GRAM_SHARES[group] / math.sqrt(len(names) + 3) if group in _GRAM_SHARES else 1.0
        for side in ("u",) if context.by_user else ("u", "a"):
            features.update(dict.fromkeys((f"{group} {side} {name}" for name in names), value))
    return features


def _iter_cues(context: StatementContext, tokens: list[str]) -> Iterator[str]:
    yield "any"
    yield from _iter_act_cues(context.statement)
    yield from _iter_form_cues(context.statement, tokens)
    yield from _iter_place_cues(context)


def _iter_act_cues(statement: Statement) -> Iterator[str]:
    acts = sorted(statement.acts)
    yield from (f"act {act}" for act in acts)
    yield from (f"acts {first} {second}" for first, second in combinations(acts, 2))
    if not acts:
        yield "no act"


def _iter_form_cues(statement: Statement, tokens: list[str]) -> Iterator[str]:
    text = statement.text
    yield f"length {_bucket(_count_tokens(tokens))}"
    yield f"content {_bucket(len(statement.words))}"
    if statement.item:
        yield "item"
    if text[:1].islower():
        yield "small"
    yield from (name for name, pattern in _FORMS if pattern.search(text))
    yield from (f"ends {ending}" for ending in _ENDINGS if text.endswith(ending))
    for kind in _WORD_CLASSES:
        if count := _count_words(text, tokens, pack_words(kind, statement.language), statement.language):
            yield kind
            yield f"{kind} {min(count, 3)}"
    if dates := len(find_dates(text, _REFERENCE_DAY)):
        yield f"dates {min(dates, 2)}"
    yield "points back" if points_back(text) else "own subject"


def _iter_place_cues(context: StatementContext) -> Iterator[str]:
    yield "later" if context.index else "first"
    yield f"of {min(context.count, _MAX_COUNT)}"
    if context.question and context.index:
        yield "after answer"
    elif context.question:
        asked = context.question.text
        yield "answers"
        yield f"answers {_bucket(_count_tokens(_split_tokens(context.statement.text)))}"
        yield from (f"asked {act}" for act in sorted(context.question.acts))
        yield "asked yes" if YES_NO_QUESTION.match(asked) else "asked open"
        yield "asked step" if is_next_step_question(context.question) else "asked fact"
    if context.previous and len(context.previous.words) <= 2:
        yield "before short"
    for name, other in (("before", context.previous), ("after", context.following)):
        if other is None or not other.acts:
            yield f"{name} no act" if other else f"{name} none"
        else:
            yield from (f"{name} {act}" for act in sorted(other.acts))


def _count_words(text: str, tokens: list[str], words: frozenset[str], language: Language) -> int:
    if language in _JOINED_LANGUAGES:
        return sum(word in text for word in words)
    return sum(token in words for token in tokens)


def _bucket(count: int) -> int:
    return count if count < 4 else 4 + int(math.log2(count / 4) * 2)


def _split_tokens(text: str) -> list[str]:
    """Return the words and signs of a text for its n-grams: folded, numbers by their length, code as one sign."""
    return [_token(each) for each in _TOKEN.findall(text[:600])][:_MAX_WORDS]


def _token(token: str) -> str:
    folded = token.casefold().replace("’", "'")
    if folded.isdigit():
        return f"#{min(len(folded), 5)}"
    if _CODE.search(token):
        return "`"
    return folded


def _iter_word_grams(tokens: list[str]) -> Iterator[str]:
    """Yield words and pairs of words; where words have no spaces, one to three signs stand for them."""
    row = ["^", *("§" if is_unsegmented(token[-1]) else token for token in tokens), "$"]
    for token in tokens:
        if is_unsegmented(token[-1]):
            yield from (token[at : at + size] for size in (1, 2, 3) for at in range(len(token) - size + 1))
        else:
            yield token
    for first, second in pairwise(row):
        yield f"{first} {second}"


def _iter_parts(tokens: list[str]) -> Iterator[str]:
    """Yield pieces of four signs, and how a run of words without spaces begins and ends."""
    for token in tokens:
        if is_unsegmented(token[-1]):
            yield f"<{token[:2]}"
            yield f"{token[-2:]}>"
        padded = token if is_unsegmented(token[-1]) else f"<{token}>"
        if len(token) > 4 or padded is token:
            yield from (padded[at : at + 4] for at in range(len(padded) - 3))


def _count_tokens(tokens: list[str]) -> int:
    """Return the number of words; two signs count as one where words have no spaces."""
    return sum((len(token) + 1) // 2 if is_unsegmented(token[-1]) else 1 for token in tokens)
