"""Answers without a model: the best hit quoted with its location, or "not in memory".

Quotes are never paraphrased. Questions are never quoted, and neither is external content, such as tool output or its
repetition by an assistant. Memories that the quoted one superseded, or that contradict it, are named after it.

Invariant: a superseded hit is not quoted; its successor is.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime

from ricordo.concurrency import run_in_thread
from ricordo.errors import StorageError
from ricordo.guard import Trust
from ricordo.language import (
    Act,
    content_words,
    coverage,
    detect_acts,
    drop_questions,
    is_correction,
    overlap,
    repeats_sentence,
    split_sentences,
    split_words,
)
from ricordo.language.dates import find_validity
from ricordo.language.packs import pack_phrases
from ricordo.lazy import lazy_compile
from ricordo.search.config import DEFAULT_RECALL, RecallConfig
from ricordo.search.contract import TOOL_SPEAKER, Answer, Hit, Query, SearchSource
from ricordo.search.documents import is_tool_call
from ricordo.search.query_context import core_words, named_words, parse_question, past_day
from ricordo.search.recall import search
from ricordo.search.supersession import as_stored, prefer_newer, restore_past, select_held, split_announced
from ricordo.workspace.entry import Entry

__all__ = [
    "NOT_IN_MEMORY",
    "answer_question",
    "choose_further",
    "choose_quote",
    "find_learned_memory",
    "find_replaced",
    "fitness",
    "is_echo",
    "is_only_question",
]


_MAX_HIT_CHARS = 2_000
_SMALL_TALK_ACTS = frozenset[Act]({"acknowledgement", "farewell", "greeting", "praise", "reaction", "thanks"})
_STATING_ACTS = frozenset[Act]({"convention", "correction", "decision", "goal", "lesson", "preference"})
# "The limit is 10, right?" is a statement
_TAG_QUESTION = lazy_compile(lambda: rf",\s*(?:{pack_phrases('question_tag')})\s*\?\W*$", re.IGNORECASE)
# people omit the question mark when they type
_UNMARKED_QUESTION = lazy_compile(lambda: rf"^\W*(?:{pack_phrases('unmarked_question')})[^.!?,;:]*$", re.IGNORECASE)


def is_only_question(hit: Hit, question: str) -> bool:
    """Return whether a hit consists only of questions, or only of the words of `question`.

    Only its first 2,000 characters count. A saved memory in the words of the question is an answer to it.
    """
    memory = bool(hit.signals.get("memory"))
    content = hit.entry.content.strip()[:_MAX_HIT_CHARS]
    if not memory and split_words(content.casefold()) == split_words(question.casefold()):
        return True
    has_question = False
    for sentence in split_sentences(content):
        found = detect_acts(sentence.text)
        if _is_question_sentence(sentence.text, found, memory=memory):
            has_question = True
        elif not found & _SMALL_TALK_ACTS:
            return False
    return has_question


def _is_question_sentence(sentence: str, found: frozenset[Act], *, memory: bool) -> bool:
    if memory:
        return "question" in found and not found & _STATING_ACTS
    return ("question" in found and not _TAG_QUESTION.search(sentence)) or _UNMARKED_QUESTION.match(
        sentence
    ) is not None


_ECHO_CANDIDATES = 12
_MIN_PRINTED_SHARE = 0.5
"""The minimum share of a sentence's words in tool output for the sentence to count as repeated from the tool."""


async def is_echo(sources: Sequence[SearchSource], hit: Hit) -> bool:
    """Return whether an assistant only repeats tool output of its session that no user stated.

    The session of a line in a file that agents write is unknown, so all sessions are searched for it. A source that
    can't be searched is skipped.
    """
    entry, session = hit.entry, "" if hit.is_in_agent_file else hit.entry.source.session
    is_own = hit.is_in_agent_file or (session and (hit.speaker == "assistant" or entry.by == "agent"))
    if not is_own or hit.trust is not Trust.AGENT:
        return False
    query = Query(text=entry.content[:_MAX_CHARS], session=session or "", document_types=("transcript", "result"))
    printed = False
    for source in (each for each in sources if each.label == hit.source):
        try:
            matches = await source.index.search(query, _ECHO_CANDIDATES)
        except StorageError:
            continue
        earlier = [
            chunk
            for chunk in (each.chunk for each in matches)
            if not (chunk.time and entry.time and chunk.time > entry.time)
        ]
        users = [chunk.content for chunk in earlier if chunk.speaker not in {"", "assistant", TOOL_SPEAKER}]
        tools = [chunk.content for chunk in earlier if chunk.speaker == TOOL_SPEAKER or chunk.document_type == "result"]
        if any(repeats_sentence(entry.content, drop_questions(text)) for text in users):
            return False
        printed = (
            printed
            or any(repeats_sentence(entry.content, text) for text in tools)
            or _paraphrases_tool(entry.content, tools, users)
        )
    return printed


def _paraphrases_tool(text: str, tools: Sequence[str], users: Sequence[str]) -> bool:
    """Return whether a text paraphrases tool output, and is closer to it than to what users stated."""
    printed = coverage(text, tools)
    return printed >= _MIN_PRINTED_SHARE and printed > coverage(text, users)


_NO_TIME = datetime.min.replace(tzinfo=UTC)
_MAX_CHARS = 600
_MIN_SHARED_WORDS = 2
_STATEMENT_MARGIN = 1.5
_MIN_SUBJECT_OVERLAP = 0.5
_MIN_SAME_OVERLAP = 0.7
_MIN_COVERED_SHARE = 0.66
_USUAL_MEANING = 0.23
_DIGIT = lazy_compile(r"\d")
_ERROR_CODE = lazy_compile(r"\b(?:[A-Z]+-?\d+|\d{3,4})\b")
_IDENTIFIER = lazy_compile(r"\S*\w[._/@]\w\S*")
_PAST_QUESTION = lazy_compile(lambda: pack_phrases("past_question"), re.IGNORECASE)
_CHANGE = lazy_compile(lambda: pack_phrases("change_in_answer"), re.IGNORECASE)
_REPLACED_PHRASE = lazy_compile(
    lambda: rf"\b(?:{pack_phrases('replaced_lead')}) ((?:(?!(?:{pack_phrases('replacing_stop')})\b)\S+\s?){{1,3}})",
    re.IGNORECASE,
)
_NEW_PHRASE = lazy_compile(lambda: rf"\b(?:{pack_phrases('replacing_lead')}) ((?:\S+\s?){{1,3}})", re.IGNORECASE)


def choose_quote(hits: Sequence[Hit], question: str, config: RecallConfig) -> tuple[Hit, float] | None:
    """Return the hit that answers best and its fitness; None if no hit contains a word of the question."""
    core = core_words(question, [hit.speaker for hit in hits])
    fit = _by_fitness([hit for hit in hits if not _current_version(hit, hits).superseded_by], question, core, config)
    if not fit:
        return None
    best, chosen = fit[0][0], _best_statement(fit, config)
    for near, hit in fit[1:]:
        is_plainer = _speaker_rank(hit) < _speaker_rank(chosen) and set(hit.matched_words) >= set(chosen.matched_words)
        if best - near <= config.tie_margin and is_plainer:
            chosen = hit
    # a question about a change asks for the change
    about_change = _CHANGE.search(question[:_MAX_CHARS]) is not None
    for near, hit in fit:
        if (best - near <= config.tie_margin and _restates(hit, chosen, core)) or (
            not about_change and _retracts(hit, chosen, core)
        ):
            chosen = hit
            break
    chosen = _find_diagnosis(chosen, fit, question)
    if _PAST_QUESTION.search(question[:_MAX_CHARS]):
        chosen = _goal_outcome(chosen, fit, config)
    rests = _curated_equivalent(_memory_from_message(chosen, fit, config), fit, config, core)
    return _current_version(_superseded_memory(rests, hits, core), hits), best


def choose_further(chosen: Hit, best: float, hits: Sequence[Hit], question: str, config: RecallConfig) -> list[Hit]:
    """Return the passages that answer nearly as well as `chosen` and each say something else, best first.

    A statement that `chosen` restates or takes back is left out, and so is what the messages of those before it say.
    """
    core = core_words(question, [hit.speaker for hit in hits])
    told, messages = [chosen], {*chosen.entry.source.messages}
    for fitness, found in _by_fitness(hits, question, core, config):
        hit = _current_version(found, hits)
        if (
            fitness >= config.further * best
            and not hit.superseded_by
            and not (_ends_with_question(hit) or is_tool_call(hit.speaker, hit.entry.content))
            and hit.entry.id not in chosen.contradicts
            and not (_restates(chosen, hit, core) or _retracts(chosen, hit, core))
            and messages.isdisjoint(hit.entry.source.messages)
            and all(_overlap(hit, each) < _MIN_SAME_OVERLAP for each in told)
        ):
            told.append(hit)
            messages.update(hit.entry.source.messages)
    return told[1:]


def _by_fitness(hits: Sequence[Hit], question: str, core: Set[str], config: RecallConfig) -> list[tuple[float, Hit]]:
    """Return the hits that contain a word of the question with their fitness, best first."""
    counts, names = parse_question(question).expected == "number", named_words(question)
    fit = [(fitness(hit, core, config, counts=counts, names=names), hit) for hit in hits if hit.matched_words]
    return sorted(fit, key=lambda pair: -pair[0])


def find_learned_memory(chosen: Hit, curated: Sequence[Hit], question: str) -> Hit | None:
    """Return the curated memory that was learned from the message `chosen` and answers the question as well.

    It contains every core word of the question that the message has in its prose, not only inside an identifier, and
    at least one word of the question in that prose that is not the speaker's name. None if no memory does.
    """
    messages = set(chosen.entry.source.messages)
    if chosen.signals.get("memory") or not messages:
        return None
    core = core_words(question, [chosen.speaker])
    prose = set(content_words(_IDENTIFIER.sub(" ", chosen.entry.content)))
    in_prose = {word for word in chosen.matched_words if prose & set(content_words(word))}
    spoken_words = {word for word in in_prose if word.casefold() != chosen.speaker.casefold()}
    fits = [
        hit
        for hit in curated
        if hit.signals.get("curated")
        and not hit.superseded_by
        and not _ends_with_question(hit)
        and messages & set(hit.entry.source.messages)
        and core & in_prose <= set(hit.matched_words)
        and spoken_words & set(hit.matched_words)
        and hit.signals.get("answer_type", 0.0) >= chosen.signals.get("answer_type", 0.0)
    ]
    return max(fits, key=lambda hit: (len(spoken_words & set(hit.matched_words)), hit.score), default=None)


def find_replaced(chosen: Hit, hits: Sequence[Hit], question: str) -> list[Hit]:
    """Return the former statements on the subject of the chosen hit that it replaced, newest first.

    These are the hits that it supersedes, directly or through others, and older memories that name what `chosen` says
    was left behind.
    """
    core = core_words(question, [hit.speaker for hit in hits])
    older = [
        hit
        for hit in hits
        if hit is not chosen
        and ((hit.superseded_by and _current_version(hit, hits) is chosen) or _replaces_memory(chosen, hit, core))
    ]
    return sorted(older, key=_hit_time, reverse=True)


def fitness(
    hit: Hit, core: Set[str], config: RecallConfig, *, counts: bool = False, names: Set[str] = frozenset()
) -> float:
    """Return how well a hit answers, in 0..1.

    The fitness is the score plus the coverage of the question and, with an embedder, the nearness in meaning, less a
    penalty if the hit ends with a question. It is reduced by a share for the strongest sign that the answer was never
    said. `core` are the words that name what it is about, `names` its names; with `counts` it asks for a number.
    """
    maximum = 1.0 + config.coverage
    fit = hit.score + config.coverage * hit.signals.get("coverage", 0.0) - config.asking * _ends_with_question(hit)
    fit += config.meaning * (hit.signals.get("dense", _USUAL_MEANING) - _USUAL_MEANING)
    penalty = max(
        config.missing_words * hit.signals.get("missing_words", 0.0),
        config.other_speaker * hit.signals.get("other_speaker", 0.0),
        config.no_number * (counts and not hit.signals.get("answer_type")),
        config.unnamed * (bool(names) and names.isdisjoint((*hit.matched_words, hit.speaker.casefold()))),
        config.call * is_tool_call(hit.speaker, hit.entry.content),
        _thinness_penalty(hit, core, config),
        _scatter_penalty(hit, core, config),
    )
    return min(max(fit * (1 - penalty) / maximum, 0.0), 1.0)


def _thinness_penalty(hit: Hit, core: Set[str], config: RecallConfig) -> float:
    matched = len(core & set(hit.matched_words))
    if matched > 1 or matched == len(core):
        return 0.0
    return config.one_word if matched else config.no_word


def _scatter_penalty(hit: Hit, core: Set[str], config: RecallConfig) -> float:
    """Return the penalty for an assistant or tool text in which no single sentence contains the core words together."""
    if not _speaker_rank(hit):
        return 0.0
    sentences = [set(content_words(each.text)) for each in split_sentences(hit.entry.content[:_MAX_CHARS])]
    wanted_terms = [set(content_words(word)) for word in core & set(hit.matched_words)]
    matched = [terms for terms in wanted_terms if any(terms & words for words in sentences)]
    if len(matched) < _MIN_SHARED_WORDS:
        return 0.0
    best = max(sum(bool(terms & words) for terms in matched) for words in sentences)
    return config.scattered_words * (1 - best / len(matched))


def _ends_with_question(hit: Hit) -> bool:
    return hit.entry.content.rstrip().endswith(("?", "？"))


def _best_statement(fit: Sequence[tuple[float, Hit]], config: RecallConfig) -> Hit:
    """Return the best hit; if it ends with a question, the best one near it that does not."""
    best, chosen = fit[0]
    if not _ends_with_question(chosen):
        return chosen
    near = [hit for fitness, hit in fit if best - fitness <= _STATEMENT_MARGIN * config.tie_margin]
    return max((hit for hit in near if not _ends_with_question(hit)), key=lambda hit: hit.score, default=chosen)


def _memory_from_message(chosen: Hit, fit: Sequence[tuple[float, Hit]], config: RecallConfig) -> Hit:
    """Return the memory that was learned from the chosen message and has all its question words, else `chosen`."""
    messages = set(chosen.entry.source.messages)
    if chosen.signals.get("memory") or not messages:
        return chosen
    best_fitness = next(fitness for fitness, hit in fit if hit is chosen)
    candidates = (
        hit
        for fitness, hit in fit
        if best_fitness - fitness <= _STATEMENT_MARGIN * config.tie_margin and hit.signals.get("memory")
    )
    learned = (hit for hit in candidates if messages & set(hit.entry.source.messages))
    return next((hit for hit in learned if set(hit.matched_words) >= set(chosen.matched_words)), chosen)


def _find_diagnosis(chosen: Hit, fit: Sequence[tuple[float, Hit]], question: str) -> Hit:
    """Return `chosen`; for a report of an error code that the question names, what an assistant said of it later."""
    codes = {code.casefold() for code in _ERROR_CODE.findall(question[:_MAX_CHARS])} & set(chosen.matched_words)
    if not codes or chosen.speaker == "assistant":
        return chosen
    findings = (
        hit
        for _, hit in fit
        if hit.speaker == "assistant"
        and hit.entry.source.session == chosen.entry.source.session
        and codes & set(hit.matched_words)
        and _is_later(hit, chosen)
        and not (_ends_with_question(hit) or is_tool_call(hit.speaker, hit.entry.content))
    )
    return next(findings, chosen)


def _goal_outcome(chosen: Hit, fit: Sequence[tuple[float, Hit]], config: RecallConfig) -> Hit:
    """Return `chosen`; for a goal, the later memory that scores nearly as high and has all its question words."""
    if chosen.entry.kind != "goal":
        return chosen
    best_fitness = next(fitness for fitness, hit in fit if hit is chosen)
    candidates = (
        hit
        for fitness, hit in fit
        if best_fitness - fitness <= _STATEMENT_MARGIN * config.tie_margin and hit.entry.kind != "goal"
    )
    outcomes = (
        hit
        for hit in candidates
        if hit.signals.get("memory") and _is_later(hit, chosen) and not _ends_with_question(hit)
    )
    return next((hit for hit in outcomes if set(hit.matched_words) >= set(chosen.matched_words)), chosen)


def _curated_equivalent(chosen: Hit, fit: Sequence[tuple[float, Hit]], config: RecallConfig, core: Set[str]) -> Hit:
    """Return the curated memory that scores nearly as high and says about the same, else `chosen`."""
    if chosen.signals.get("curated"):
        return chosen
    best_fitness = next(fitness for fitness, hit in fit if hit is chosen)
    candidates = (
        hit for fitness, hit in fit if best_fitness - fitness <= config.tie_margin and hit.signals.get("curated")
    )
    return next(
        (hit for hit in candidates if not _ends_with_question(hit) and _says_the_same(hit, chosen, core)), chosen
    )


def _says_the_same(curated: Hit, chosen: Hit, core: Set[str]) -> bool:
    """Return whether a curated memory says the same as `chosen`; for a later hit it must say nearly all of it."""
    query_words = core & set(chosen.matched_words)
    if len(query_words & set(curated.matched_words)) < _MIN_COVERED_SHARE * len(query_words):
        return False
    left, right = (set(content_words(hit.entry.content[:_MAX_CHARS])) for hit in (curated, chosen))
    if not _is_later(chosen, curated):
        return overlap(left, right) >= _MIN_SUBJECT_OVERLAP
    # a later statement of a person with another number is new information
    news = not _speaker_rank(chosen) and any(_DIGIT.search(word) for word in right - left)
    otherwise = news or _restates(chosen, curated, core) or _retracts(chosen, curated, core)
    return not otherwise and overlap(left, right) >= _MIN_SAME_OVERLAP


def _superseded_memory(chosen: Hit, hits: Sequence[Hit], core: Set[str]) -> Hit:
    """Return the superseded memory learned from the chosen message, if it answers the question, else `chosen`."""
    messages = set(chosen.entry.source.messages)
    if chosen.signals.get("memory") or not messages:
        return chosen
    rests = (hit for hit in hits if hit.superseded_by and messages & set(hit.entry.source.messages))
    # a message may say more than the superseded memory
    query_words = core & set(chosen.matched_words)
    return next((hit for hit in rests if 2 * len(query_words & set(hit.matched_words)) >= len(query_words)), chosen)


def _current_version(hit: Hit, hits: Sequence[Hit]) -> Hit:
    """Return the hit that replaced `hit`, directly or through others; `hit` itself if none did."""
    by_id = {each.entry.id: each for each in hits if each.entry.id}
    while hit.superseded_by in by_id:
        hit = by_id.pop(hit.superseded_by)
    return hit


def _replaces_memory(chosen: Hit, older: Hit, core: Set[str]) -> bool:
    """Return whether `chosen` reports a change away from what only the older memory names."""
    fits = older.signals.get("memory") and not older.superseded_by and not _speaker_rank(chosen)
    if not fits or not _is_later(chosen, older):
        return False
    content = chosen.entry.content[:_MAX_CHARS]
    older_words = set(content_words(older.entry.content[:_MAX_CHARS]))
    shared = set(chosen.matched_words) & set(older.matched_words)
    left = _replaced_words(content) - shared
    new = {word for match in _NEW_PHRASE.finditer(content) for word in content_words(match[1])} - shared - left
    return _says_change(chosen) and bool(shared & core) and bool(older_words & left) and not older_words & new


def _speaker_rank(hit: Hit) -> int:
    """Return 0 for a memory or a person, 1 for an assistant, 2 for a tool."""
    return {"assistant": 1, "tool": 2}.get(hit.speaker, 0)


def _restates(hit: Hit, other: Hit, core: Set[str]) -> bool:
    """Return whether `hit` is a later statement with all the question words of `other`, and no less plain.

    A single shared core word out of several does not make a common subject; in that case the texts have to overlap
    more.
    """
    states = (
        hit.entry.kind in _STATING_ACTS
        or bool(detect_acts(hit.entry.content) & _STATING_ACTS)
        or (bool(core) and core <= set(hit.matched_words) and _says_change(hit))
    )
    plain = _speaker_rank(hit) <= _speaker_rank(other)
    if not (_is_later(hit, other) and states and plain and set(hit.matched_words) >= set(other.matched_words)):
        return False
    shared = core & set(other.matched_words)
    if len(shared) >= min(_MIN_SHARED_WORDS, len(core)):
        return True
    return _overlap(hit, other) >= _MIN_SUBJECT_OVERLAP


def _retracts(hit: Hit, other: Hit, core: Set[str]) -> bool:
    """Return whether `hit` is later and changes what only `other` names, or changes a memory of the same kind."""
    content = hit.entry.content[:_MAX_CHARS]
    shared = set(hit.matched_words) & set(other.matched_words)
    if not _is_later(hit, other) or len(shared) < _MIN_SHARED_WORDS or not shared >= core & set(other.matched_words):
        return False
    matched = content_words(" ".join(other.matched_words))
    other_words = set(content_words(other.entry.content[:_MAX_CHARS])).difference(matched)
    # names alone, and words such as "next", are not a common subject
    both_memories = bool(hit.signals.get("memory")) and hit.entry.kind == other.entry.kind and bool(shared & core)
    return _says_change(hit) and (both_memories or bool(other_words & _replaced_words(content)))


def _says_change(hit: Hit) -> bool:
    """Return whether a hit has words for a change or a correction, or holds from a day that it names."""
    content = hit.entry.content[:_MAX_CHARS]
    changes = _CHANGE.search(content) is not None or is_correction(content)
    return changes or find_validity(content, _hit_time(hit)).start is not None


def _replaced_words(text: str) -> set[str]:
    """Return the content words after a phrase such as `from` or `instead of`, which name what was replaced."""
    return {word for match in _REPLACED_PHRASE.finditer(text) for word in content_words(match[1])}


def _overlap(hit: Hit, other: Hit) -> float:
    return overlap(*(set(content_words(each.entry.content[:_MAX_CHARS])) for each in (hit, other)))


def _is_later(hit: Hit, other: Hit) -> bool:
    return _hit_time(hit) > _hit_time(other)


def _hit_time(hit: Hit) -> datetime:
    return hit.entry.since or hit.entry.time or _NO_TIME


NOT_IN_MEMORY = "not in memory"
_QUOTE_CANDIDATES = 12
_NO_LEARNED_MERGE = 2.0
_OVERFETCH = 5
_MAX_OTHERS = 4
_MAX_FURTHER = 2
_MAX_CURATED = 200
_MAX_QUOTE_CHARS = 600


async def answer_question(
    sources: Sequence[SearchSource],
    question: Query | str,
    *,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    past: Mapping[str, Entry] | None = None,
) -> Answer:
    """Return the passage that answers `question` best, quoted with file and line, or an answer that is not found.

    With `past`, the entries as of `now` by id, it is what held then. Raises: `StorageError` if no source is searchable.
    """
    # a passage is quoted for its own words, not for its neighbours, and a memory of it may lack the answer
    # the floor was measured for word scores, and a hit that shares no word with the question is never quoted
    weights = replace(
        config or DEFAULT_RECALL, breadth=0.0, reply=0.0, session_coverage=0.0, form=0.0, repetition=_NO_LEARNED_MERGE,
        dense=0.0, dense_context=0.0,
    )  # fmt: skip
    query = Query(text=question) if isinstance(question, str) else question
    # questions that are repeated every day must not use up the limit
    found = await search(sources, query, limit=_OVERFETCH * _QUOTE_CANDIDATES, now=now, config=weights)
    moment = now or datetime.now(UTC)
    found = found if past is None else restore_past(found, past, moment)
    day = past_day(query.text, moment.date()) or (moment.date() if past is not None else None)
    found, announced = split_announced(select_held(found, day))
    found = found if day else prefer_newer(found, moment.date())
    stating = await _stating(found, query.text)
    trusted, chosen = await _choose_trusted(sources, stating, query.text, weights)
    hits = trusted[:_QUOTE_CANDIDATES]
    if chosen is None or chosen[1] < weights.min_fitness:
        return Answer(
            found=False,
            text=NOT_IN_MEMORY,
            score=chosen[1] if chosen else 0.0,
            others=as_stored(hits[:_MAX_OTHERS]),
            unconfirmed=_find_unconfirmed(stating, trusted, query.text, weights),
        )
    best, fit = chosen
    known_hits = hits
    if not best.signals.get("memory") and (not query.document_types or "curated" in query.document_types):
        curated = await search(
            sources, replace(query, document_types=("curated",)), limit=_MAX_CURATED, now=now, config=weights
        )
        curated = [hit for hit in curated if hit.trust is not Trust.EXTERNAL]
        known_hits = [*curated, *hits]
        statements = await _stating(curated, query.text)
        learned_memory = await run_in_thread(find_learned_memory, best, statements, query.text)
        best = learned_memory or best
    superseded = find_replaced(best, hits, query.text)
    rest = [hit for hit in hits if hit not in superseded and _hit_location(hit) != _hit_location(best)]
    later = announced.get(best.entry.superseded_by)
    further = (later,) if later else await _find_further(sources, (best, fit), rest, query.text, weights)
    contradicting = [*{hit.entry.id: hit for hit in known_hits if hit.entry.id in best.contradicts}.values()]
    answer = Answer(
        found=True, text="", hit=best, path=best.path, line_number=best.line_number, score=fit,
        contradicting=tuple(contradicting),
        superseded=as_stored(superseded),
        others=as_stored(hit for hit in rest if hit not in further)[:_MAX_OTHERS],
        further=further,
    )  # fmt: skip
    return replace(answer, text="\n".join(f"{label}{_format_quote(hit)}" for label, hit in answer.quotes))


async def _find_further(
    sources: Sequence[SearchSource], best: tuple[Hit, float], hits: Sequence[Hit], question: str, weights: RecallConfig
) -> tuple[Hit, ...]:
    """Return at most two further passages to quote, none of which only repeats the output of a tool."""
    further = (await run_in_thread(choose_further, *best, hits, question, weights))[:_MAX_FURTHER]
    return tuple([hit for hit in further if not await is_echo(sources, hit)])


async def _stating(hits: Sequence[Hit], question: str) -> list[Hit]:
    """Return the hits that are not only questions; in a thread, as the first call loads word lists."""
    return await run_in_thread(lambda: [hit for hit in hits if not is_only_question(hit, question)])


async def _choose_trusted(
    sources: Sequence[SearchSource], stating: Sequence[Hit], question: str, weights: RecallConfig
) -> tuple[list[Hit], tuple[Hit, float] | None]:
    """Return the hits that are not external, and the one to quote with its fitness."""
    trusted = [hit for hit in stating if hit.trust is not Trust.EXTERNAL]
    while True:
        chosen = await run_in_thread(choose_quote, trusted[:_QUOTE_CANDIDATES], question, weights)
        if chosen is None or chosen[1] < weights.min_fitness or not await is_echo(sources, chosen[0]):
            return trusted, chosen
        trusted = [hit for hit in trusted if hit is not chosen[0]]


def _find_unconfirmed(
    stating: Sequence[Hit], trusted: Sequence[Hit], question: str, weights: RecallConfig
) -> tuple[Hit, ...]:
    """Return the external hit that would be quoted if it were trusted; empty if there is none."""
    outside = [hit for hit in stating if not any(hit is each for each in trusted)][:_QUOTE_CANDIDATES]
    chosen = choose_quote(outside, question, weights)
    return (chosen[0],) if chosen and chosen[1] >= weights.min_fitness else ()


def _hit_location(hit: Hit) -> tuple[str, str, int]:
    return hit.source, hit.path, hit.line_number


def _format_quote(hit: Hit) -> str:
    content = hit.entry.content.strip()
    quote = content if len(content) <= _MAX_QUOTE_CHARS else f"{content[: _MAX_QUOTE_CHARS - 1].rstrip()}…"
    time = hit.entry.since or hit.entry.time
    attribution = ", ".join(filter(None, (hit.speaker, f"{time:%Y-%m-%d}" if time else "")))
    return f"{quote}\n({f'{attribution}; ' if attribution else ''}{hit.path}:{hit.line_number})"
