"""Language: words, sentences, cues, names and dates, without a model.

Pure functions over text, the offline half of every later step: extraction, summaries, consolidation, recall. English
is served well, German, French, Spanish, Italian, Portuguese, Chinese and Japanese at a basic level, any other script
by its words and sentences alone. Nothing here raises for any text, and everything is linear in its length."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.language.acts import SIGNALS, Act, detect_acts, is_correction
    from ricordo.language.dates import DateGrain, DateMention, annotate_dates, find_dates, find_validity
    from ricordo.language.languages import (
        LANGUAGES,
        Language,
        Script,
        detect_language,
        dominant_script,
        is_unsegmented,
        script_of,
    )
    from ricordo.language.literals import find_literals
    from ricordo.language.names import (
        Introduction,
        NameKind,
        NameMention,
        find_introduction,
        find_names,
        find_whose_names,
    )
    from ricordo.language.packs import PatternTable
    from ricordo.language.sentences import (
        Sentence,
        SentenceKind,
        blank_quotes,
        is_cut_off,
        split_sentences,
        strip_lead_in,
        strip_opener,
    )
    from ricordo.language.third_person import (
        attribute_to_speaker,
        drop_repeated_subject,
        is_english,
        is_foreign,
        keeps_grammar,
        lacks_subject,
        mentions_name,
        name_listener,
        opens_with_pronoun,
        points_back,
        tells_event,
        to_third_person,
    )
    from ricordo.language.words import (
        containment,
        content_words,
        coverage,
        drop_questions,
        is_stop_word,
        jaccard,
        overlap,
        repeats_sentence,
        split_identifier,
        split_words,
        stem,
        strip_accents,
        text_similarity,
    )

__all__ = [
    "LANGUAGES",
    "SIGNALS",
    "Act",
    "DateGrain",
    "DateMention",
    "Introduction",
    "Language",
    "NameKind",
    "NameMention",
    "PatternTable",
    "Script",
    "Sentence",
    "SentenceKind",
    "annotate_dates",
    "attribute_to_speaker",
    "blank_quotes",
    "containment",
    "content_words",
    "coverage",
    "detect_acts",
    "detect_language",
    "dominant_script",
    "drop_questions",
    "drop_repeated_subject",
    "find_dates",
    "find_introduction",
    "find_literals",
    "find_names",
    "find_validity",
    "find_whose_names",
    "is_correction",
    "is_cut_off",
    "is_english",
    "is_foreign",
    "is_stop_word",
    "is_unsegmented",
    "jaccard",
    "keeps_grammar",
    "lacks_subject",
    "mentions_name",
    "name_listener",
    "opens_with_pronoun",
    "overlap",
    "points_back",
    "repeats_sentence",
    "script_of",
    "split_identifier",
    "split_sentences",
    "split_words",
    "stem",
    "strip_accents",
    "strip_lead_in",
    "strip_opener",
    "tells_event",
    "text_similarity",
    "to_third_person",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".acts": "SIGNALS Act detect_acts is_correction",
        ".dates": "DateGrain DateMention annotate_dates find_dates find_validity",
        ".languages": "LANGUAGES Language Script detect_language dominant_script is_unsegmented script_of",
        ".names": "Introduction NameKind NameMention find_introduction find_names find_whose_names",
        ".sentences": "Sentence SentenceKind blank_quotes is_cut_off split_sentences strip_lead_in strip_opener",
        ".third_person": "attribute_to_speaker drop_repeated_subject is_english is_foreign keeps_grammar "
        "lacks_subject mentions_name name_listener opens_with_pronoun points_back tells_event to_third_person",
        ".literals": "find_literals",
        ".packs": "PatternTable",
        ".words": "containment content_words coverage drop_questions is_stop_word jaccard overlap repeats_sentence "
        "split_identifier split_words stem strip_accents text_similarity",
    },
)
