"""Opposites, synonyms, number words and phrases: tables for comparing statements.

Of a row of opposites two sides never mean the same; a row of synonyms lists words that say the same of a person. All
are lower case and without accents.
"""

from collections.abc import Mapping

__all__ = ["LIGHT_WORDS", "NUMBER_WORDS", "OPPOSITES", "PHRASE_WORDS", "SYNONYMS", "WISH_WORDS"]


# sides are parted by "|", forms of one side by spaces
_OPPOSITES_LIST = """
like love enjoy prefer favour favor adore | dislike hate avoid loathe detest despise
start begin | stop quit end finish | continue
before | after | during
more | less fewer
most | least
increase raise grow | decrease reduce lower shrink
always | never | sometimes occasionally seldom rarely
allow permit enable | forbid prohibit deny disable ban
open | close closed
accept approve | reject refuse decline
add | remove delete drop
buy | sell
lend | borrow
teach | learn
send | receive
win | lose
upgrade | downgrade
join | leave
hire | fire
married | divorced single widowed engaged
left | right
north | south | east | west
up | down
big large tall | small little short tiny
long | short
hot warm | cold cool
early | late
old | young new
good best better | bad worst worse
first | last | second | third
morning | afternoon | evening | night noon
monday | tuesday | wednesday | thursday | friday | saturday | sunday weekend
january | february | march | april | may | june | july | august | september | october | november | december
daily | weekly | monthly | yearly annually | hourly
today | tomorrow | yesterday
winter | summer | spring | autumn fall
mother mum mom | father dad | sister | brother | son | daughter | wife | husband | aunt | uncle | cousin
dog | cat
tabs tab | spaces space
dark | light
on | off
with | without
public | private
internal | external
front frontend | back backend
left | stayed
male man | female woman
vegan | vegetarian
formal | informal casual
verbose detailed | brief concise terse
sync synchronous | async asynchronous
import | export
input | output
minimum min | maximum max
mag moge liebe bevorzugt bevorzuge | hasst hasse meidet verabscheut
vor | nach | wahrend
mehr | weniger
immer | nie niemals | manchmal selten
morgens | abends | mittags | nachts
montag montags | dienstag dienstags | mittwoch mittwochs | donnerstag donnerstags | freitag freitags | samstag | sonntag
schwester | bruder | mutter | vater | sohn | tochter
gross | klein
aime adore prefere | deteste hait evite
avant | apres | pendant
plus | moins
toujours | jamais | parfois rarement
matin | soir | midi | nuit
lundi | mardi | mercredi | jeudi | vendredi | samedi | dimanche
soeur | frere | mere | pere | fils | fille
gusta encanta prefiere | odia detesta evita
antes | despues | durante
mas | menos
siempre | nunca | veces
manana | tarde | noche
lunes | martes | miercoles | jueves | viernes | sabado | domingo
hermana | hermano | madre | padre | hijo | hija
"""
_SYNONYMS_LIST = """
like love enjoy prefer favour favor fond
live lives reside based
home house
use utilise utilize employ
work job employed
dislike hate loathe detest
big large
start begin
finish end
buy purchase
speak talk
child kid
mum mom mother
dad father
daily everyday
always constantly
fast quick quickly
ask request
show display
short brief concise terse
error mistake
repository repo
database db
configuration config
javascript js
typescript ts
kubernetes k8s
postgresql postgres
application app
photo picture
car automobile
movie film
holiday vacation
flat apartment
physician doctor
mag liebe
wohnt wohne lebt lebe
arbeitet arbeite
habite vit
aime adore
vive reside
gusta encanta
trabaja
"""
_LIGHT_WORDS_LIST = """
user users person people someone he she they his her their theirs him them its also really very quite generally usually
typically currently now just rather still already much a lot lots kind sort thing things one ones get gets got go
personally strongly actually please have has had will would should can could
benutzer nutzer nutzerin benutzerin sehr gern gerne am gerade derzeit aktuell momentan eigentlich
utilisateur utilisatrice tres vraiment actuellement
usuario usuaria muy realmente actualmente
utente molto attualmente usuario atualmente muito
"""
_PHRASES_LIST = r"""
daily = (?:every|each) day|jeden tag|täglich|tous les jours|todos los días|cada día
weekly = (?:every|each) week|jede woche|wöchentlich
monthly = (?:every|each) month|jeden monat|monatlich
yearly = (?:every|each) year|jedes jahr|jährlich|annually
want = would (?:like|love) to
 = (?:works?|working) as|arbeitet als|travaille comme|trabaja como|lavora come|trabalha como
 = at present|at the moment|right now|these days|nowadays|zurzeit|im moment|en ce moment|en este momento
 = 非常|十分|特别|真的|很|一点
"""
_WISH_WORDS_LIST = """
want wants wanted plan plans planned hope hopes intend intends wish wishes aim aims dream dreams going
will möchte mochte plant hofft veut voudrait espère quiere espera desea vuole spera quer deseja
"""
_NUMBERS_LIST = """
zero one two three four five six seven eight nine ten eleven twelve
null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf
zero un deux trois quatre cinq six sept huit neuf dix onze douze
cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce
"""
OPPOSITES: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(side.split()) for side in line.split("|")) for line in _OPPOSITES_LIST.strip().splitlines()
)
"""Rows of sides: two texts, of which one has a word of one side and the other one of another, differ."""
SYNONYMS: dict[str, str] = {
    word: line.split()[0] for line in reversed(_SYNONYMS_LIST.strip().splitlines()) for word in line.split()
}
"""Each word to the one by which it is compared."""
LIGHT_WORDS: frozenset[str] = frozenset(_LIGHT_WORDS_LIST.split())
"""Words that say nothing of what a statement is about."""
NUMBER_WORDS: Mapping[str, str] = {
    word: str(number) for line in _NUMBERS_LIST.strip().splitlines() for number, word in enumerate(line.split())
}
"""Number words of four languages to digits."""
PHRASE_WORDS: tuple[tuple[str, str], ...] = tuple(
    (pattern, plain.strip()) for plain, pattern in (line.split("= ") for line in _PHRASES_LIST.strip("\n").splitlines())
)
"""Patterns of phrases, in lower case, with the word that says the same; empty where nothing is lost without them."""
WISH_WORDS: frozenset[str] = frozenset(_WISH_WORDS_LIST.split())
"""Words that say that something is wanted, and so is not yet."""
