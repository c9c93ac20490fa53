"""Text to words in any script, and the stop words of each language.

A run of a script without spaces becomes its overlapping bigrams. An identifier, path or compound is kept whole and
followed by its parts. Words are case-folded and NFKC-normalised. Stop words are closed classes only, and a few fillers.

Invariant: one pass over disjoint character classes, so the time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat

from ricordo.language.languages import Language, detect_language, is_unsegmented
from ricordo.language.stemming import stem
from ricordo.lazy import lazy_compile

__all__ = ["STOP_WORDS", "content_words", "is_stop_word", "split_identifier", "split_words"]


_ENGLISH = """
a an the this that these those some any each every either neither both all such no nor not none
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves who whom whose which what when where why how
am is are was were be been being do does did done doing have has had having will would shall should can could may might
must ought need'nt cannot
and or but if then else so than as because while until although though unless since whether
of at by for with without about against between among into onto through during before after above below to from up
down in out on off over under again further once upon within toward towards via per
here there now just only own same too very also ever even still yet already quite rather really much many more most
other another few less least lot lots
i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd we'll
they're they've they'd they'll that's that'd that'll there's there're here's what's who's who're where's
when's why's how's
let's isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't won't wouldn't shan't shouldn't can't
couldn't mayn't mightn't mustn't ain't
im ive dont doesnt didnt cant wont isnt wasnt thats whats
okay ok yeah yep yes nope oh ah hey hi hello wow um uh hmm well please thanks gonna wanna gotta kinda sorta y'all
something anything everything nothing someone anyone everyone somebody anybody everybody
s t d ll m re ve o y e.g i.e etc vs
"""
_GERMAN = """
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
ich mich mir mein meine meinen meinem meiner meines du dich dir dein deine deinen deinem deiner er ihn ihm sein seine
seinen seinem seiner sie ihr ihre ihren ihrem ihrer es wir uns unser unsere unseren unserem unserer euch euer eure man
sich selbst wer wen wem wessen was welche welcher welches welchen wo wann warum wie dieser diese dieses diesen diesem
jener jene jenes jeder jede jedes jeden alle allem allen alles
bin bist ist sind seid war waren wart gewesen sein habe hast hat haben habt hatte hatten gehabt werde wirst wird werden
wurde wurden worden kann kannst können konnte konnten muss müssen musste mussten soll sollen sollte sollten will wollen
wollte wollten darf dürfen mag möchte möchten würde würden
und oder aber denn sondern wenn dann als ob dass weil während bis damit falls obwohl also doch
in im an am auf aus bei beim mit nach seit von vom zu zum zur für gegen ohne um durch über unter vor hinter neben
zwischen ab per
nicht nur auch noch schon sehr so da hier dort jetzt nun mal eben halt ja nein bitte danke etwas mehr viel
"""
_FRENCH = """
le la les l un une des du de d au aux ce cet cette ces c'est c cela ça ceci
je j me m moi tu te t toi il elle on nous vous ils elles se s lui leur leurs eux mon ma mes ton ta tes son sa ses notre
nos votre vos y en qui que qu quoi dont où quand comment pourquoi quel quelle quels quelles
suis es est sommes êtes sont été être étais était étaient étant ai as a avons avez ont avais avait avaient avoir eu
vais va vont aller peux peut peuvent pouvons dois doit doivent j'ai
et ou mais donc or ni car si lorsque puisque comme parce
à dans par pour sur sous avec sans chez entre vers contre depuis pendant avant après dès
ne n pas plus moins très trop aussi bien même tout tous toute toutes encore déjà ici là alors oui non merci
"""
_SPANISH = """
el la los las lo un una unos unas del al este esta estos estas ese esa esos esas aquel aquella esto eso
yo me mí tú te ti él ella ello nosotros nosotras vosotros ustedes usted ellos ellas nos os se le les mi mis
tu tus su sus
nuestro nuestra nuestros nuestras vuestro vuestra que quien quién qué cual cuál cuando cuándo donde dónde como cómo
soy eres es somos son fui fue fueron era eran ser sido estoy está están estaba estar estamos he has ha hemos han había
haber hay tengo tiene tener voy va van ir puedo puede pueden
y e o u pero sino si porque aunque mientras pues
a ante bajo con contra de desde en entre hacia hasta para por según sin sobre tras
no ni sí ya muy más menos tan también tampoco todo toda todos todas aquí ahí allí ahora entonces gracias
"""
_ITALIAN = """
il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dalla dai nel nello nella
nei nelle sul sulla sui col questo questa questi queste quello quella quelli quelle ciò
io me mi tu te ti lui lei egli ella esso noi ci voi vi loro si ne mio mia miei mie tuo tua tuoi tue suo sua suoi sue
nostro nostra nostri nostre vostro vostra che chi cui quale quali quando dove come perché
sono sei è siamo siete era erano essere stato stata ho hai ha abbiamo avete hanno aveva avevano avere vado va vanno
può possono devo deve
e ed o ma se però anche mentre quindi
a ad di da in con su per tra fra
non no sì già molto più meno tanto tutto tutta tutti tutte qui qua lì là ora adesso allora grazie
"""
_PORTUGUESE = """
o a os as um uma uns umas do da dos das ao à aos às no na nos nas pelo pela pelos pelas este esta estes estas esse essa
isto isso aquele aquela aquilo
eu me mim tu te ti você vocês ele ela eles elas nós nos vos se lhe lhes meu minha meus minhas teu tua seu sua seus suas
nosso nossa nossos nossas que quem qual quais quando onde como porquê porque
sou és é somos são fui foi foram era eram ser sido estou está estão estava estar estamos tenho tem têm temos tinha ter
há havia haver vou vai vão ir posso pode podem
e ou mas se embora enquanto pois
a ante com contra de desde em entre para por sem sob sobre até
não nem sim já muito mais menos tão também todo toda todos todas aqui aí ali agora então obrigado obrigada
"""
# Function characters; a bigram made of them alone is grammar, one that holds any other character is content.
_CHINESE = "的了吗呢吧啊着过和与或是在有我你他她它们这那哪个就都也还很不没要会能把被对从到给让说一上下里"
_JAPANESE = "のにはをがでとへもやかよねなだですますたてしるれいうこそあさんらくけせわまりき"
STOP_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset(_ENGLISH.split()),
    "de": frozenset(_GERMAN.split()),
    "fr": frozenset(_FRENCH.split()),
    "es": frozenset(_SPANISH.split()),
    "it": frozenset(_ITALIAN.split()),
    "pt": frozenset(_PORTUGUESE.split()),
    "zh": frozenset(_CHINESE),
    "ja": frozenset(_JAPANESE),
}
"""Stop words by language; single function characters for Chinese and Japanese."""


def is_stop_word(word: str, language: Language = "en") -> bool:
    """Say whether a case-folded word (or bigram) is grammar in that language.

    A single Latin letter is one in every language; a single digit is content.
    """
    listed = STOP_WORDS[language]
    if language in {"zh", "ja"}:
        return all(char in listed for char in word) or word in STOP_WORDS["en"]
    return word in listed or (len(word) == 1 and word.isascii() and word.isalpha())


# Letters and digits of every script, plus the combining signs that str.isalnum leaves out of Indic, Semitic and
# South-East Asian words. The danda (U+0964, U+0965) is a full stop and stays outside.
_CHAR = (
    r"[^\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3]"
)
_WORD = lazy_compile(rf"(?:{_CHAR})+(?:[-_./:@'’&+\\]{{1,3}}(?:{_CHAR})+)*(?:\+\+|#)?")
# what the same finds in a text of ASCII alone, for much less
_ASCII_WORD = lazy_compile(r"[A-Za-z0-9]+(?:[-_./:@'&+\\]{1,3}[A-Za-z0-9]+)*(?:\+\+|#)?")
_SEPARATORS = lazy_compile(r"[-_./:@'’&+\\#]+")
_CAMEL = lazy_compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_POSSESSIVE = lazy_compile(r"['’]s$", re.IGNORECASE)
_MAX_RUN_CHARS = 200


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, repeats kept, case-folded; empty for a text without letters or digits.

    A compound is followed by its parts; characters of unsegmented scripts come as bigrams (a lone one as itself).
    A single run of more than 200 characters is a blob (base64, minified code) and gives nothing.
    """
    return tuple(chain.from_iterable(map(_split_run, _split_runs(text))))


def split_identifier(name: str) -> tuple[str, ...]:
    """Return the parts of an identifier, path or compound in order, case kept; one part when it has no seams.

    Seams are punctuation and changes from lower to upper case: `parseHTTPHeader` gives parse, HTTP, Header.
    """
    parts: list[str] = []
    for piece in _SEPARATORS.split(name):
        camel = _CAMEL.findall(piece) if piece.isascii() and _has_inner_capital(piece) else [piece]
        parts.extend(part for part in camel if part)
    return tuple(parts)


def content_words(text: str, language: Language | None = None) -> tuple[str, ...]:
    """Return the words that carry meaning, in order, repeats kept: stop words out, inflection folded.

    Two texts are comparable when both were read in the same language; `None` detects it from the text (English when
    unsure). Empty for a text of stop words only.
    """
    tongue = language or detect_language(text)
    return tuple(chain.from_iterable(map(_content_words_of_run, _split_runs(text), repeat(tongue))))


def _split_runs(text: str) -> Sequence[str]:
    """Return what stands between white space and most signs, without blobs."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    found: list[str] = (_ASCII_WORD if plain.isascii() else _WORD).findall(plain)
    if len(plain) <= _MAX_RUN_CHARS:
        return found
    return [run for run in found if len(run) <= _MAX_RUN_CHARS or is_unsegmented(run[0])]


@lru_cache(maxsize=32_768)
def _content_words_of_run(run: str, language: Language) -> tuple[str, ...]:
    return tuple(stem(word, language) for word in _split_run(run) if not is_stop_word(word, language))


@lru_cache(maxsize=16_384)
def _split_run(run: str) -> tuple[str, ...]:
    if any(is_unsegmented(char) for char in run):
        return tuple(_split_mixed_run(run))
    plain = _POSSESSIVE.sub("", run.replace("’", "'"))
    whole = plain.casefold()
    parts = split_identifier(plain)
    if len(parts) < 2 or _is_contraction(plain):
        return (whole,)
    return (whole, *(part.casefold() for part in parts if len(part) > 1 or part.isdigit()))


def _split_mixed_run(run: str) -> list[str]:
    """Cut a run that holds unsegmented characters: bigrams there, ordinary words between them."""
    found: list[str] = []
    start = 0
    for at in range(1, len(run) + 1):
        if at < len(run) and is_unsegmented(run[at]) == is_unsegmented(run[start]):
            continue
        piece = run[start:at]
        if not is_unsegmented(piece[0]):
            found.extend(word.casefold() for word in split_identifier(piece))
        elif len(piece) == 1:
            found.append(piece)
        else:
            found.extend(piece[i : i + 2] for i in range(len(piece) - 1))
        start = at
    return found


def _has_inner_capital(word: str) -> bool:
    return any(char.isupper() for char in word[1:]) and any(char.islower() for char in word)


def _is_contraction(word: str) -> bool:
    """Say whether the only seam is an apostrophe (don't, l'eau keep their French or English parts apart elsewhere)."""
    return "'" in word and _SEPARATORS.sub("", word).isalpha() and len(word.rpartition("'")[2]) <= 2
