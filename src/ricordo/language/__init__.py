"""Language: words, sentences, cues, names and dates, without a model.

Pure functions over text, the offline half of every later step: extraction, summaries, consolidation, recall. English
is served well, German, French, Spanish, Italian, Portuguese, Chinese and Japanese at a basic level, any other script
by its words and sentences alone. Nothing here raises for any text, and everything is linear in its length."""

from ricordo.language.cues import Act, detect_acts, blank_quotes, is_correction
from ricordo.language.dates import DateMention, DateGrain, annotate_dates, find_dates
from ricordo.language.folding import stem, strip_accents
from ricordo.language.introductions import Introduction, find_introduction
from ricordo.language.languages import LANGUAGES, Language, detect_language
from ricordo.language.names import NameMention, find_names
from ricordo.language.openers import strip_opener
from ricordo.language.persons import name_listener, attribute_to_speaker, to_third_person, keeps_grammar, mentions_name
from ricordo.language.repeating import coverage, repeats_sentence, drop_questions
from ricordo.language.scripts import Script, dominant_script, is_unsegmented, script_of
from ricordo.language.sentences import Sentence, SentenceKind, split_sentences
from ricordo.language.similarity import containment, jaccard, overlap, text_similarity
from ricordo.language.stopwords import STOP_WORDS, is_stop_word
from ricordo.language.words import content_words, split_identifier, split_words

__all__ = [
    "LANGUAGES",
    "STOP_WORDS",
    "Act",
    "DateMention",
    "DateGrain",
    "Introduction",
    "Language",
    "NameMention",
    "Script",
    "Sentence",
    "SentenceKind",
    "detect_acts",
    "name_listener",
    "attribute_to_speaker",
    "blank_quotes",
    "containment",
    "content_words",
    "coverage",
    "annotate_dates",
    "detect_language",
    "dominant_script",
    "find_dates",
    "find_introduction",
    "find_names",
    "stem",
    "to_third_person",
    "is_correction",
    "is_stop_word",
    "is_unsegmented",
    "jaccard",
    "keeps_grammar",
    "mentions_name",
    "overlap",
    "repeats_sentence",
    "script_of",
    "split_identifier",
    "split_sentences",
    "drop_questions",
    "strip_accents",
    "text_similarity",
    "strip_opener",
    "split_words",
]
