"""Words that most questions hold and few answers repeat: `use`, `call`, `kind`. They are content, but weak evidence.

"Which database do we use?" is answered by "The main database is PostgreSQL", and is not by "We use Fastify".
"""

from functools import cache

from ricordo.language import LANGUAGES, Language, stem

__all__ = ["GENERIC_WEIGHT", "is_generic"]

GENERIC_WEIGHT = 0.2
"""How much a generic word weighs, of what any other word that is as rare weighs."""

_GENERIC_WORDS: dict[Language, str] = {
    "en": """use call name named thing stuff kind type sort way time make do have get take go come want need tell know
        give put happen find think something anything someone anyone somebody anybody people person many much long often
        usually currently recently ever different favorite favourite good last first next new main exactly
        actually mention describe plan feel keep""",
    "de": "benutzen verwenden nutzen heißen nennen ding sache art weise zeit machen tun haben gehen sagen wissen",
    "fr": "utiliser appeler nommer chose sorte genre type façon temps faire avoir aller prendre dire savoir",
    "es": "usar utilizar llamar cosa tipo clase manera tiempo hacer tener ir tomar decir saber",
    "it": "usare utilizzare chiamare cosa tipo genere modo tempo fare avere andare prendere dire sapere",
    "pt": "usar utilizar chamar coisa tipo maneira tempo fazer ter ir tomar dizer saber",
}


@cache
def is_generic(word: str, language: Language) -> bool:
    """Tell whether any form of `word` is generic in that language, or in English, which is mixed into all."""
    return any(stem(word, tongue) in _generic_stems(tongue) for tongue in {language, "en"} & set(LANGUAGES))


@cache
def _generic_stems(language: Language) -> frozenset[str]:
    return frozenset(stem(word, language) for word in _GENERIC_WORDS.get(language, "").split())
