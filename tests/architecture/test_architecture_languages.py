"""No word of a human language stands outside the packs, so a language is one file."""

import ast
import functools
import re
from collections.abc import Iterator
from typing import get_args

from ricordo.language import find_literals
from ricordo.language.packs import (
    LANGUAGES,
    PhraseKind,
    RowKind,
    TableKind,
    WordKind,
    join_lines,
    language_packs,
    pack_words,
)
from source_tree import Module, modules

PACKS = "ricordo.language.packs."
OTHER_LETTERS = {
    "ricordo.agent.tools.memory_files": "characters that look like a slash",
    "ricordo.guard.fence": "characters that look like others",
    "ricordo.language.literals": "small letters that are one letter where case is ignored",
    "ricordo.guard.scanner": "characters that look like others",
    "ricordo.testing.store_recall": "texts that stores are tried with",
    "ricordo.testing.store_saving": "texts that stores are tried with",
}
"""Modules with letters beyond ASCII, and what these are."""
FORMATS = {
    "ricordo.agent.agent_store": "states of a store",
    "ricordo.cli.chat_session_commands": "arguments of commands",
    "ricordo.context.prompt": "a line that the prompt itself has",
    "ricordo.context.summary.summarizers": "errors and refusals of models in the place of a summary",
    "ricordo.guard.structured": "SQL",
    "ricordo.runtime.setting_layers": "values of settings",
    "ricordo.workspace.entry": "fields of an entry",
}
"""Modules with patterns or lists that look like English, and what these are."""
LEAST_WORDS, LEAST_LISTED = 3, 20
"""This many function words of one language in one pattern or list make it a vocabulary; a list has so many words."""


@functools.cache
def _outside() -> tuple[tuple[str, list[str]], ...]:
    """Return the name of each module outside the packs, with its literals and its lists of literals."""
    return tuple(
        (module.name, list(_literals(module))) for module in modules() if not f"{module.name}.".startswith(PACKS)
    )


def _literals(module: Module) -> Iterator[str]:
    documented: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented.add(id(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in documented:
            yield node.value if isinstance(node.value, str) else node.value.decode("utf-8", "replace")
        elif isinstance(node, ast.Set | ast.Tuple | ast.List):
            values = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            yield "|".join(value for value in values if isinstance(value, str) and " " not in value)


def find_foreign_words(text: str) -> list[str]:
    """Return the words with letters beyond ASCII, and Chinese characters; a letter alone and a range are none."""
    if text.isascii():
        return []
    plain = re.sub(r"[^\s|]-[^\s|]", " ", text)
    return [word for word in re.findall(r"[^\W\d_]{2,}|[\u3400-\u9fff]", plain) if not word.isascii()]


def list_words(text: str) -> set[str]:
    """Return the words that are alternatives of a pattern, or all words of a text that is a list of words."""
    words = set[str]()
    if "|" in text:
        words.update(re.findall(r"(?:^|[(|:])([a-z'’]{2,})(?=[|()?\\[]|$)", text, re.MULTILINE))
    if len(text.split()) > LEAST_LISTED and text == text.lower() and re.fullmatch(r"[\s\w'’./|-]+", text):
        words.update(text.split())
    return words


def test_no_letters_of_another_language_stand_outside_the_packs() -> None:
    found = {name: [word for text in texts for word in find_foreign_words(text)] for name, texts in _outside()}
    assert {name: words for name, words in found.items() if words and name not in OTHER_LETTERS} == {}
    assert all(found[name] for name in OTHER_LETTERS)


def test_no_list_or_pattern_of_function_words_stands_outside_the_packs() -> None:
    vocabularies = [pack_words("stop", language) for language in LANGUAGES]
    found: dict[str, list[set[str]]] = {}
    for name, texts in _outside():
        listed = [words for text in texts if len(words := list_words(text)) >= LEAST_WORDS]
        shared = (words & vocabulary for words in listed for vocabulary in vocabularies)
        found[name] = [words for words in shared if len(words) >= LEAST_WORDS]
    assert {name: words for name, words in found.items() if words and name not in FORMATS} == {}
    assert all(found[name] for name in FORMATS)


def test_each_kind_of_vocabulary_is_read_somewhere() -> None:
    kinds = {kind for literal in (WordKind, RowKind, TableKind, PhraseKind) for kind in get_args(literal)}
    assert kinds - {text for _, texts in _outside() for text in texts} == set()


def test_each_kind_of_vocabulary_that_is_asked_for_exists() -> None:
    kinds = {kind for literal in (WordKind, RowKind, TableKind, PhraseKind) for kind in get_args(literal)}
    asked = {
        node.args[0].value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"pack_words", "pack_rows", "pack_table", "pack_phrases"}
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    assert asked <= kinds, "in a pattern that is built late, mypy does not see a wrong kind"


def test_a_vocabulary_is_seen_in_patterns_lists_and_sets() -> None:
    assert list_words(r"^(?:nicht|kein\w*|nie(?:mals)?|ohne)(?!\w)") >= {"nicht", "kein", "nie", "ohne"}
    assert list_words("der die das " * 8) == {"der", "die", "das"}
    assert find_foreign_words("für|über|[à-ö]|é|没有") == ["für", "über", "没有"]


def test_nearly_every_cue_of_a_pack_needs_a_literal_so_that_most_texts_are_not_searched_for_it() -> None:
    sources = [
        join_lines(lines, edges=pack.edges)
        for pack in language_packs()
        for lines in (*pack.cues.values(), *pack.signals.values())
    ]
    unread = [source for source in sources if find_literals(source) is None]
    assert len(unread) <= len(sources) // 10, unread
