"""Topics: files for entries that do not fit into MEMORY.md, and the numbered list of them in MEMORY.md. Pure.

A topic is a file below `memory/topics/` with a front matter of name, description and type. Edits of a person stay; the
description follows the entries as long as it is the generated one. If the list is too long, MEMORY.md lists the most
useful topics and, last, a topic that lists all others.

Invariant: each topic is listed in one of the two, and lines that a person wrote in either stay.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from ricordo.concurrency import yield_point
from ricordo.curation.importance import ROLE_NAMES, usefulness
from ricordo.curation.memory_document import MemoryDocument, parse_memory_document
from ricordo.language import (
    Language,
    content_words,
    detect_language,
    find_names,
    is_stop_word,
    split_identifier,
    split_sentences,
    split_words,
    stem,
)
from ricordo.language.packs import language_pack, pack_words
from ricordo.language.words import is_generic
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import decode_json
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import TOPICS, WORKSPACE
from ricordo.workspace.markdown import POINTER_END, POINTER_START, SPEAKER_LABEL, TOPIC_FRONT_MATTER, TOPIC_LIST_LINE
from ricordo.workspace.titles import DESCRIPTION_CHARS, POINTER_CHARS, shorten_statement

__all__ = [
    "FADED_HEAD",
    "FADED_TOPIC",
    "FURTHER_TOPICS",
    "TOPICS",
    "TOPIC_LIST_LINE",
    "Subjects",
    "Topic",
    "add_pointers",
    "count_subjects",
    "create_topic",
    "description_line",
    "entry_kind",
    "find_renamed_topics",
    "has_generated_description",
    "is_generated",
    "is_kind_topic",
    "kind_topic_name",
    "linked_files",
    "read_topic",
    "render_topic_list",
    "select_listed_topics",
    "topic_path",
    "topic_type",
    "update_description",
    "update_further_topics",
]


_TOPICS_FOLDER = TOPICS.removeprefix(f"{WORKSPACE}/")
_TOPIC_LINK = lazy_compile(rb"\]\((?:\./)?(?:memory/)?topics/([^)\s]+\.md)\)")
_FRONT_MATTER_FIELD = lazy_compile(r"^(name|description|type):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_TYPE_BY_KIND = {"preference": "user", "convention": "feedback", "lesson": "feedback", "reference": "reference"}
_KIND_BY_TYPE = {"user": "preference", "feedback": "convention", "reference": "reference"}
_KIND_TOPICS: Mapping[str, str] = {
    "preference": "More preferences",
    "convention": "More conventions",
    "decision": "More decisions",
    "goal": "More goals",
    "lesson": "More lessons",
}
_DEFAULT_TOPIC = "More facts"
_MAX_SLUG = 60
_MIN_SHARED_AMONG = 10
_MAX_SHARE = 2
"""Among ten entries or more, what over half of them speak of tells nothing of a topic."""
_MIN_RENAMED = 2
_MIN_SURE = 2
_MIN_TELLING_WORDS = 3
_NOUN = lazy_compile(
    lambda: (
        rf"(?<![\w'’-])(?:{'|'.join(sorted(pack_words('determiner')))}) (?P<noun>[^\W\d_]{{4,24}})(?![\w'’-])"
        r"(?: (?P<following>[^\W\d_]+))?"
    ),
    re.IGNORECASE,
)
_WORD_LIST = lazy_compile(r"\w+(?:, \w+){2,5}")
"""The form of a description that earlier versions made of the words that most entries share."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic file as listed in MEMORY.md; `type` is that of its front matter, empty without one.

    `pointers` state memories that are too long for MEMORY.md in short.
    """

    path: str
    name: str
    description: str
    type: str = ""
    pointers: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The path below the topics folder."""
        return self.path.removeprefix(f"{TOPICS}/")


def read_topic(path: str, document: bytes) -> Topic:
    """Return the topic of a file, from its front matter, else from its first heading."""
    text = document.decode("utf-8", "replace")
    front, body = _split_front_matter(text)
    fields = {match[1]: _unquote(match[2]) for match in _FRONT_MATTER_FIELD.finditer(front)}
    headings = [line.lstrip("# ").strip() for line in body.split("\n") if line.startswith("#")]
    name = fields.get("name") or next(filter(None, headings), "") or path.rpartition("/")[2].removesuffix(".md")
    description = _to_one_line(fields.get("description", ""))
    return Topic(path=path, name=_to_one_line(name), description=description, type=_to_one_line(fields.get("type", "")))


def topic_type(kind: str) -> str:
    """Return the topic type of a kind of memory: user, feedback, project or reference."""
    return _TYPE_BY_KIND.get(kind, "project")


def entry_kind(type_name: str) -> str:
    """Return the kind of a memory that a topic of this type states as a whole; `fact` for unknown types."""
    return _KIND_BY_TYPE.get(type_name, "fact")


def create_topic(name: str, entries: Sequence[Entry]) -> tuple[str, bytes]:
    """Return the path and the head of a new topic for these entries, the most useful first."""
    kinds = Counter(topic_type(entry.kind) for entry in entries)
    fields = {
        "name": name,
        "description": _describe_entries(name, _without_outdated(entries)),
        "type": min(kinds, key=lambda kind: (-kinds[kind], kind)),
    }
    front = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in fields.items())
    return topic_path(name), f"---\n{front}---\n# {_to_one_line(name)}\n\n".encode("utf-8", "replace")


def topic_path(name: str) -> str:
    """Return the path of the topic of this name."""
    return f"{TOPICS}/{_slug(name)}.md"


def update_description(path: str, before: bytes, after: bytes) -> bytes:
    """Return the topic `after` with a description of its entries, if `before` had a generated one.

    So its line in the list describes the current entries, and nothing that was removed.
    """
    if not has_generated_description(path, before) or not is_generated(after):
        return after
    line = description_line(read_topic(path, after).name, _active_entries(path, after))
    front, rest = after.split(b"\ndescription: ", 1)
    return b"".join([front, b"\n", line, rest.split(b"\n", 1)[1]])


def description_line(name: str, entries: Sequence[Entry]) -> bytes:
    """Return the front matter line that describes the topic of this name by its entries."""
    description = json.dumps(_describe_entries(name, _without_outdated(entries)), ensure_ascii=False)
    return b"description: " + description.encode("utf-8", "replace") + b"\n"


def has_generated_description(path: str, document: bytes) -> bool:
    """Tell whether the description of a topic is the generated one, so that it changes with the entries."""
    if not is_generated(document):
        return False
    topic, entries = read_topic(path, document), _active_entries(path, document)
    generated = _describe_entries(topic.name, _without_outdated(entries))
    return topic.description == generated or _is_earlier_form(topic.description, entries)


def is_generated(document: bytes) -> bool:
    """Tell whether the front matter of a topic is unedited, so that the topic can be removed when it is empty."""
    return TOPIC_FRONT_MATTER.fullmatch(_split_front_matter(document.decode("utf-8", "replace"))[0]) is not None


def linked_files(document: bytes) -> frozenset[str]:
    """Return the topic files that a document links to, relative to the topics folder."""
    return frozenset(match[1].decode("utf-8", "replace") for match in _TOPIC_LINK.finditer(document))


def render_topic_list(topics: Iterable[Topic], by_hand: bytes) -> list[bytes]:
    """Return the lines that list these topics and their pointers, without topics that people link to in `by_hand`."""
    linked = linked_files(by_hand)
    unlinked = [topic for topic in sorted(topics, key=lambda topic: topic.path) if topic.file not in linked]
    rows = [
        (_topic_line(number, topic), *map(_pointer_line, topic.pointers)) for number, topic in enumerate(unlinked, 1)
    ]
    return [line.encode("utf-8", "replace") for row in rows for line in row]


def add_pointers(topics: Sequence[Topic], long_entries: Mapping[str, Sequence[Entry]], limit: int) -> list[Topic]:
    """Return the topics with pointers to the most useful of their long entries, by path, at most `limit` in all.

    The entry that the description of a topic states has none, nor has one that may be outdated: its mark stands in
    the topic.
    """
    chosen: dict[str, list[tuple[str, Entry]]] = {
        topic.path: [
            (text, entry)
            for entry in long_entries.get(topic.path, ())
            if not entry.maybe_outdated_by
            and (text := _state_entry(entry, POINTER_CHARS))
            and not (topic.description and topic.description.strip("…") in text)
        ]
        for topic in topics
    }
    ranks = sorted((usefulness(entry) for rows in chosen.values() for _, entry in rows), reverse=True)[:limit]
    return [
        replace(
            topic,
            pointers=tuple(
                text
                for text, entry in sorted(chosen[topic.path], key=lambda row: usefulness(row[1]), reverse=True)
                if ranks and usefulness(entry) >= ranks[-1]
            ),
        )
        for topic in topics
    ]


def _pointer_line(text: str) -> str:
    return f"{POINTER_START}{text.replace('](', '] (')}{POINTER_END}\n"


@dataclass(frozen=True, kw_only=True)
class Subjects:
    """What entries speak of: proper names, and `nouns` behind an article.

    `counts` is how many of the entries speak of each, `forms` the words of each form by its first word.
    """

    counts: Mapping[str, int]
    nouns: frozenset[str]
    forms: Mapping[str, Sequence[tuple[str, str]]]

    def find(self, entry: Entry, minimum: int = 1) -> list[str]:
        """Return the subjects of an entry: names that `minimum` entries speak of, then nouns of one more entry.

        The most common of each stand first.
        """
        found = _find_mentioned(entry, self.forms)
        named = [name for name in found if self.counts.get(name, 0) >= minimum + (name in self.nouns)]
        return sorted(named, key=lambda name: (name in self.nouns, -self.counts[name], name))


def count_subjects(entries: Iterable[Entry], subject_entries: Iterable[Entry] | None = None) -> Subjects:
    """Return what the entries speak of; only the names and nouns in `subject_entries` if given.

    The name of somebody who speaks in one of them is no subject, nor whose memory it is, nor what so many speak of that
    it tells nothing. Neither is a word that is mostly written in small letters, as the handles of users are, or that
    only begins sentences. A noun is a subject if it surely is one in two entries, in any of its forms.
    """
    entries = list(entries)
    chosen = list(entries if subject_entries is None else subject_entries)
    speakers = _find_speakers(entries)
    names = {name for entry in chosen for name in _find_subjects(entry) if name.casefold() not in speakers}
    taken = speakers | {word for name in names for word in split_words(name)}
    nouns = _find_shared_nouns(chosen, taken)
    forms = _group_forms([*((name, name) for name in names), *nouns])
    counts = Counter(name for entry in entries for name in _find_mentioned(entry, forms))
    contents = [entry.content for entry in entries]
    limit = len(entries) / _MAX_SHARE if len(entries) >= _MIN_SHARED_AMONG else len(entries)
    return Subjects(
        counts={
            name: count
            for name, count in counts.items()
            if count <= limit and (name not in names or _is_subject(name, count, contents))
        },
        nouns=frozenset(name for name, _ in nouns) - names,
        forms=forms,
    )


def _is_subject(name: str, count: int, contents: Sequence[str]) -> bool:
    """Tell whether a name is written as one, and not only because it begins a sentence."""
    exact = [content for content in contents if name in content]
    inside = re.compile(rf"[\w,;] ?{re.escape(name)}(?!\w)")
    return 2 * len(exact) >= count and any(inside.search(content) for content in exact)


def _find_subjects(entry: Entry) -> set[str]:
    yield_point()
    return {mention.text for mention in find_names(entry.content)} - ROLE_NAMES


def _find_shared_nouns(entries: Sequence[Entry], taken: Collection[str]) -> list[tuple[str, str]]:
    """Return the nouns behind an article in two entries or more, each with each of its forms; none of `taken`.

    In two of them no other noun may follow, as it does behind an adjective.
    """
    forms: dict[str, Counter[str]] = {}
    sure: Counter[str] = Counter()
    for entry in entries:
        yield_point()
        for key, word, is_sure in _find_nouns(entry.content):
            if word.casefold() not in taken:
                forms.setdefault(key, Counter())[word] += 1
                sure[key] += is_sure
    shared = [
        sorted(counts, key=lambda word: (-counts[word], word))
        for key, counts in forms.items()
        if sure[key] >= _MIN_SURE
    ]
    return [(f"{words[0][0].upper()}{words[0][1:]}", word) for words in shared for word in words]


def _find_nouns(content: str) -> set[tuple[str, str, bool]]:
    """Return the stem and the form of each word behind an article that may be a noun, and whether it surely is one."""
    found: dict[str, tuple[str, str, bool]] = {}
    language = detect_language(content)
    for match in _NOUN.finditer(content):
        word, following = match["noun"], match["following"] or ""
        has_capital_nouns = language_pack(language).capital_nouns
        is_sure = not following or is_stop_word(following.casefold(), language) or has_capital_nouns
        if (word[0].isupper() or not has_capital_nouns) and _is_telling(word, language):
            key = stem(word.casefold(), language)
            found[key] = (key, word, is_sure or (key in found and found[key][2]))
    return set(found.values())


def _is_telling(word: str, language: Language) -> bool:
    folded = word.casefold()
    other = pack_words("untitled") | pack_words("time_word") | pack_words("number_word") | pack_words("not_name")
    return not (is_stop_word(folded, language) or is_generic(folded, language) or folded in other)


def _find_speakers(entries: Sequence[Entry]) -> set[str]:
    """Return the folded names of speakers, which extraction writes before what they said, and of users."""
    labels = {match[1].casefold() for entry in entries if (match := SPEAKER_LABEL.match(entry.content))}
    return labels | {entry.scope.user.casefold() for entry in entries if entry.scope and entry.scope.user}


def _group_forms(forms: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return subjects with the folded words of a form between spaces, by the first of these words."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, form in forms:
        if words := split_words(form):
            groups.setdefault(words[0], []).append((name, f" {' '.join(words)} "))
    return groups


def _find_mentioned(entry: Entry, groups: Mapping[str, Sequence[tuple[str, str]]]) -> set[str]:
    """Return which names an entry mentions, however they are written there."""
    words = split_words(entry.content)
    text = f" {' '.join(words)} "
    return {name for word in groups.keys() & set(words) for name, form in groups[word] if form in text}


def find_renamed_topics(topics: Mapping[str, MemoryDocument], subjects: Subjects) -> dict[str, str]:
    """Return by subject the name of the topic that a person gave another name: most of its entries speak of it."""
    renamed: dict[str, str] = {}
    for path, document in topics.items():
        name = read_topic(path, document.data).name
        entries = [] if is_kind_topic(path) or name in subjects.counts else document.entries
        found = Counter(subject for entry in entries for subject in subjects.find(entry))
        for subject, count in found.items():
            if count >= _MIN_RENAMED and 2 * count > len(entries) and topic_path(subject) not in topics:
                renamed[subject] = name
    return renamed


def kind_topic_name(entry: Entry) -> str:
    """Return the topic name of an entry that shares no subject with others: that of its kind."""
    return _KIND_TOPICS.get(entry.kind, _DEFAULT_TOPIC)


def is_kind_topic(path: str) -> bool:
    """Tell whether a topic is for entries of a kind that share no subject."""
    return path in {topic_path(name) for name in (*_KIND_TOPICS.values(), _DEFAULT_TOPIC)}


def _topic_line(number: int, topic: Topic) -> str:
    # a description must not add a link to the line
    description = f": {topic.description.replace('](', '] (')}" if topic.description else ""
    name = re.sub(r"[\[\]()]", "", topic.name) or topic.file
    return f"{number}. [{name}]({_TOPICS_FOLDER}/{topic.file}){description}\n"


def _split_front_matter(text: str) -> tuple[str, str]:
    match = re.match(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", text, re.DOTALL | re.MULTILINE)
    return (match[1], text[match.end() :]) if match else ("", text)


def _unquote(value: str) -> str:
    """Return a front matter value without quotes."""
    try:
        loaded = decode_json(value)
    except ValueError:
        return value.strip("'\"")
    return loaded if isinstance(loaded, str) else value


def _to_one_line(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text).strip()


def _without_outdated(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries that no newer one may have made outdated; all if there is none."""
    return [entry for entry in entries if not entry.maybe_outdated_by] or entries


def _describe_entries(name: str, entries: Sequence[Entry]) -> str:
    """Return the sentence that tells most of a topic, else its most useful entry in short; empty without entries.

    It names the topic. If possible it begins with that name, says what somebody or something is, and not how it is
    today.
    """
    ranked = sorted(entries, key=usefulness, reverse=True)
    subject = _pad_words(name)
    sentences = [text for entry in ranked for text in _shorten_sentences(entry) if subject in _pad_words(text)]
    telling = max(sentences, key=lambda text: _rate_sentence(text, subject), default="")
    return telling or (_state_entry(ranked[0], DESCRIPTION_CHARS) if ranked else "")


def _shorten_sentences(entry: Entry) -> list[str]:
    """Return the sentences of an entry, longer ones without the clauses for which a description has no room."""
    yield_point()
    text = _to_one_line(shorten_statement(entry.content, len(entry.content) + 1))
    return [
        shorten_statement(each.text, DESCRIPTION_CHARS)
        for each in split_sentences(text)
        if len(content_words(each.text)) >= _MIN_TELLING_WORDS
    ]


def _pad_words(text: str) -> str:
    return f" {' '.join(split_words(text))} "


def _rate_sentence(text: str, subject: str) -> tuple[bool, int, bool]:
    words, language = set(split_words(text)), detect_language(text)
    passes = not words.isdisjoint(pack_words("passing_word", language))
    has_role = not words.isdisjoint(pack_words("role_word", language))
    return not text.startswith("…"), _pad_words(text).startswith(subject) - passes, has_role


def _state_entry(entry: Entry, limit: int) -> str:
    """Return an entry in short, on one line of at most `limit` characters."""
    yield_point()
    return _to_one_line(shorten_statement(entry.content, limit))


def _is_earlier_form(description: str, entries: Sequence[Entry]) -> bool:
    """Tell whether an earlier version made the description: part of an entry, or words that most entries share."""
    part = description.strip("…")
    if part and any(part in _to_one_line(entry.content) for entry in entries):
        return True
    if not _WORD_LIST.fullmatch(description):
        return False
    return {*description.split(", ")} <= {word for entry in entries for word in split_words(entry.content)}


def _active_entries(path: str, document: bytes) -> list[Entry]:
    return [located.entry for located in parse_entries(document, path) if located.entry.state == "active"]


def _slug(name: str) -> str:
    plain = " ".join(split_identifier(name)) or name
    slug = "-".join(re.findall(r"[^\W_]+", plain.casefold()))[:_MAX_SLUG].strip("-")
    return slug or f"topic-{blake2b(name.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"


FADED_TOPIC = f"{TOPICS}/faded.md"
"""The topic that holds what has faded."""
FADED_HEAD = b"""---
name: "Faded"
description: "memories that nobody confirmed or used for long; a confirmation returns one to MEMORY.md"
type: "project"
---
# Faded

"""
"""The generated beginning of that topic."""
FURTHER_TOPICS = f"{TOPICS}/further_topics.md"
"""The topic that lists the topics without room in MEMORY.md. Paths of other generated topics have no underscore."""
_FURTHER_NAME = "Further topics"
_FURTHER_HEAD = f"""---
name: "{_FURTHER_NAME}"
description: "Topics for which MEMORY.md has no room"
type: "reference"
---
# {_FURTHER_NAME}
""".encode()


def select_listed_topics(
    topics: Sequence[Topic], documents: Mapping[str, MemoryDocument], by_hand: bytes, limit: int
) -> list[Topic]:
    """Return the topics for MEMORY.md to list, at most `limit`, by the usefulness of their entries in `documents` by
    path.

    Topics that people link to themselves, in `by_hand`, are left out.
    """
    linked = linked_files(by_hand)
    candidates = [topic for topic in topics if topic.file not in linked and topic.path != FURTHER_TOPICS]
    if len(candidates) <= limit:
        return candidates + [
            topic for topic in topics if topic.path == FURTHER_TOPICS and _has_other_content(documents[FURTHER_TOPICS])
        ]
    sorted_topics = sorted(candidates, key=lambda topic: _topic_rank(documents[topic.path]), reverse=True)
    listed_count = max(limit - 1, 0)
    return [
        *sorted_topics[:listed_count],
        Topic(path=FURTHER_TOPICS, name=_FURTHER_NAME, description=f"{len(sorted_topics) - listed_count:,} more"),
    ]


def update_further_topics(memory: bytes, documents: Mapping[str, MemoryDocument]) -> dict[str, MemoryDocument]:
    """Return the topics with one that lists those missing in `memory`; without it if none is missing.

    Text that a person wrote into it stays, and so does the topic.
    """
    further = documents.get(FURTHER_TOPICS, MemoryDocument())
    rest = {path: document for path, document in documents.items() if path != FURTHER_TOPICS}
    linked = linked_files(memory)
    topics = [read_topic(path, document.data) for path, document in rest.items()]
    lines = render_topic_list([topic for topic in topics if topic.file not in linked], b"")
    if not lines and not _has_other_content(further):
        return rest
    text = b"".join(part.data for part in further.parts if not TOPIC_LIST_LINE.match(part.data)) or _FURTHER_HEAD
    return {
        **rest,
        FURTHER_TOPICS: parse_memory_document(text.rstrip(b"\n") + b"\n\n" + b"".join(lines), FURTHER_TOPICS),
    }


def _has_other_content(document: MemoryDocument) -> bool:
    """Tell whether the list of further topics holds text of a person."""
    rest = [part for part in document.parts if not TOPIC_LIST_LINE.match(part.data)]
    return any(part.entry or not (part.fenced or part.is_blank or part.data.startswith(b"# ")) for part in rest)


def _topic_rank(topic: MemoryDocument) -> tuple[bool, tuple[object, ...]]:
    """Return the sort key of topics: those with edited front matter first, then by their most useful entry."""
    ranks = [usefulness(entry) for entry in topic.entries if entry.state == "active"]
    return not is_generated(topic.data), max(ranks) if ranks else ()
