"""Decide whether the value next to a secret's name is a secret, or a placeholder, a reference, code or prose.

Invariant: decisions use the words and the form of the value, never its entropy, so they can be explained. Well-known
values (`changeme`, `password`, `example`) protect nothing and are not marked.
"""

import enum
import re

from ricordo.lazy import lazy_compile

__all__ = ["NameStrength", "ValueForm", "is_placeholder", "is_secret_value", "is_word_passphrase"]


class NameStrength(enum.IntEnum):
    """How clearly a name denotes a secret: WEAK `token`, MEDIUM `api_key` or `client_secret`, STRONG `password`."""

    WEAK = 1
    MEDIUM = 2
    STRONG = 3


class ValueForm(enum.Enum):
    """The form in which a value follows its name.

    LITERAL is always a value (an environment line, a query string); QUOTED is in quotes; BARE may be a variable; PROSE
    follows "is" in a sentence or is in a table.
    """

    LITERAL = "literal"
    QUOTED = "quoted"
    BARE = "bare"
    PROSE = "prose"


_DUMMY_WORDS = """
password passwd passphrase passcode pwd pass passwort motdepasse contrasena senha wachtwoord kennwort secret token key
apikey accesskey secretkey clientsecret accesstoken authtoken credential credentials changeme changethis changeit
replaceme fillme fillin setme example sample dummy placeholder redacted removed hidden masked omitted filtered
censored test testing demo foo bar baz foobar todo tbd fixme null none nil undefined void true false yes no on off na
empty blank unset default string str text char varchar bytes int integer number boolean bool object optional required
mandatory any unknown value val var variable env input prompt ask bearer basic digest oauth oauth2 jwt saml ldap sso
mfa 2fa bcrypt argon2 argon2id scrypt pbkdf2 sha1 sha256 sha512 md5 base64 hmac hs256 rs256 plaintext plain encrypted
hashed generated random secure strong weak valid invalid incorrect wrong correct missing expired forgotten stored here
user admin root
erforderlich pflichtfeld notwendig freiwillig falsch richtig ungültig gültig abgelaufen vergessen unbekannt geheim leer
obligatoire requis requise facultatif facultative incorrect incorrecte invalide oublié oubliée expiré vide inconnu
obligatorio obligatoria requerido requerida opcional incorrecta incorrecto inválida inválido olvidada vencida vacía
obbligatorio obbligatoria richiesto richiesta facoltativo facoltativa errata errato scaduta scaduto vuota opzionale
obrigatório obrigatória requerido expirada vazia desconhecida incorreta opcionais
verplicht vereist optioneel onjuist verlopen leeg onbekend wymagane opcjonalne nieprawidłowe zorunlu gerekli isteğebağlı
krävs obligatoriskt valfritt pakollinen påkrævet valgfritt påkrevd vyžadováno povinné nepovinné wajib
обязательно обязательный обязательное требуется неверный неверно необязательно опционально пусто забыт забыли секрет
"""
_DUMMIES = frozenset(_DUMMY_WORDS.split())
_TEMPLATE = lazy_compile(
    r"<[^<>]*>|\$\{[^{}]*\}|\$\([^()]*\)|\$\{\{.*\}\}|\$[A-Za-z_][A-Za-z0-9_.:]*|\{\{.*\}\}|\{[^{}]*\}|%[A-Za-z_]+%"
    r"|%\([A-Za-z_]+\)?s?|%[sdr]|\[[^\[\]]*\]|\([^()]*\)|[xX*.\-_#?•●∙…0]+|!.*|@[\w./-]+|ENC\[.*",
    re.DOTALL,
)
_REFERENCE = lazy_compile(
    r"(?:os\.(?:environ|getenv)|process\.env|import\.meta|env[.:\[(/]|secrets?[.:/]|vault:|op://|ssm:|arn:|keyring"
    r"|file:|https?://|projects/|[~.]{0,2}/[\w.~-]|[A-Za-z]:\\)"
)
_KEY_FILE = lazy_compile(r"[\w./\\~-]*\.(?:pem|key|json|ya?ml|toml|txt|env|crt|p12|pfx)\Z")
_INSTRUCTION = lazy_compile(
    r"(?:your|my|the|some|insert|replace|enter|add|put|use|set|paste|type)[a-z0-9]*"
    r"(?:key|token|secret|password|pass|passwd|here|value|credentials?|this|me|id)[a-z]*"
)
_SAMPLE = lazy_compile(
    r"EXAMPLE|(?i:your[-_ ]|placeholder|redacted|changeme|x{6}|\*{4}|<[a-z _-]+>|\.\.\.|…|insert[-_ ])"
)
_NOT_ALPHANUMERIC = lazy_compile(r"[^a-z0-9]+")


def is_placeholder(value: str) -> bool:
    """Return whether `value` only represents a secret: a template, a reference, a mask or a known dummy."""
    text = value.strip()
    if not text or _TEMPLATE.fullmatch(text) or _REFERENCE.match(text) or _KEY_FILE.match(text):
        return True
    if _SAMPLE.search(text):
        return True
    if not text.isascii() and text.casefold().rstrip(".!") in _DUMMIES:
        return True
    words = _NOT_ALPHANUMERIC.sub("", text.lower())
    if text.isascii() and not words:
        return len(text) < 4
    return words in _DUMMIES or (len(words) <= 64 and _INSTRUCTION.fullmatch(words) is not None)


_IDENTIFIER = lazy_compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)*\Z", re.ASCII)
_SNAKE = lazy_compile(r"[a-z]+(?:_[a-z0-9]+)+\Z")
_CODE_WORD = lazy_compile(
    r"passw|token|secret|key|cred|user|config|setting|args?\b|arg\d|env|input|value|self|this|request|response"
    r"|default|param|option|result|data|var|string|field|line|item|model|version|encoded|type",
    re.IGNORECASE,
)
_PATTERN = lazy_compile(r"[\[\](){}<>^|\\]")
_NUMBERS = lazy_compile(r"^[\d.,:%/+\-–TZ]+\Z")
_VERSION = lazy_compile(r"^[vV]?\d+(?:\.\d+)+[a-z0-9.-]*\Z")
_CONSTANT = lazy_compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_WORDS = lazy_compile(r"[^\W\d_]+(?:[-_.:/'’ ][^\W\d_]+)*[!.]?\Z")
_RULE_LIST = lazy_compile(r"[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+\Z")
_NUMBERED = lazy_compile(r"\d{1,3}[-–][^\W\d_]+\Z")
_LETTERS = lazy_compile(r"[A-Za-z]+\Z")
_HAS_DIGIT = lazy_compile(r"\d")
_HAS_LETTER = lazy_compile(r"[^\W\d_]")
_SENTENCE = lazy_compile(
    r"\b(?:is|are|be|been|was|must|should|can|cannot|may|will|your|my|the|an?|to|at|for|of|in|or|and|not|no|if|"
    r"required|invalid|incorrect|enter|too|least|field|reset|forgot|with|match|short|long|new|confirm|change)\b",
    re.IGNORECASE,
)
_DESCRIPTIVE = lazy_compile(
    r"\w+[-–](?:encoded|encrypted|hashed|based|protected|bits?|bytes?|char(?:acter)?s?|digits?|factor|only|free|way|"
    r"day|days|hour|hours|minute|minutes|second|long|letters?|words?|step|sensitive|insensitive|compatible|managed|"
    r"backed|signed|like|style|specific|related)\Z",
    re.IGNORECASE,
)
# Parts of compounds that describe a secret: "short-lived", "one-time", "third-party".
_COMPOUND_WORDS = """
able access account admin age aged all always any api app application aware base brand bucket built cased char check
client cloud code coded company config cookie credential credentials cross data date default defined dependent deploy
device double driven end env environment ever exempt extra field file first form format fourth free friendly full
generated github gitlab group half hand hard header hidden high host human input issued key kubernetes last length
less level life line lived local login long low machine made manager name needed never new next non not notch number
off old one only open opt optional out over own part party pass passphrase password plain policy post pre private
project proof proxy public quality rate read real refresh request required reset role root rotated safe saved scope
scoped second secret self semi server service session set setting sha shared short side signed single site sized
space specific state stored store strength string strong style super system team tech temp temporary tenant term test
text third three time tls token top two type ultra under unique unset user value vault verified version visible wallet
weak web well wide word world write wrong year zero
dev docker main master mysql postgres prod production redis release secrets stage staging valid
the and for from with but are was has had his her its our out per too via yet you your this that than then them they
into upon must need sehr nicht
"""
_COMPOUND_PARTS = frozenset(_COMPOUND_WORDS.split())
_PARTICIPLE = lazy_compile(r"\w+(?:ed|ing|able|ible|ized|ised|ful|less|ly)\Z")
_CASED = lazy_compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONSONANTS = lazy_compile(r"[bcdfghjklmnpqrstvwxz]{6}")
_MIN_PASSPHRASE = 10
_MAX_JUMBLED_PART = 2.5
_MIN_LENGTHS = {NameStrength.WEAK: 8, NameStrength.MEDIUM: 6, NameStrength.STRONG: 4}


def is_secret_value(value: str, strength: NameStrength, form: ValueForm) -> bool:
    """Return whether `value`, found next to a secret's name in this `form`, is the secret itself."""
    if is_placeholder(value) or _CONSTANT.match(value) or _RULE_LIST.match(value) or _NUMBERED.match(value):
        return False
    if form is ValueForm.QUOTED and strength is NameStrength.STRONG:
        return len(value) >= 3 and not (" " in value and _SENTENCE.search(value))
    if len(value) < _MIN_LENGTHS[strength] or any(mark.isspace() for mark in value):
        return False
    if _WORDS.match(value):
        return _is_word_secret(value, strength, form)
    if strength is not NameStrength.STRONG and any(shape.search(value) for shape in (_PATTERN, _NUMBERS, _VERSION)):
        return False
    decide = {ValueForm.PROSE: _is_prose_secret, ValueForm.BARE: _is_bare_secret}.get(form)
    return decide is None or decide(value, strength)


_SENTENCE_WORDS_LIST = """
add all any are ask asked been before being best better both but can change choose come could did does done down each
enter every everybody few file find first five four get give given goes good has have here how if its keep kept know
known later letter like long lost made make many may more most much never next nobody none nothing only other phrase
pick random same seven several should show shown since six some something sometimes somewhere still take ten than that
their them then there these they think three too two unless until used using was well were what when where which
while who whole why will within without words would write written
aber als auch aus bei beim bitte darf dass dem den der des die ein eine einem einen einer etwa für hat hier ich ihr ist
kann kein keine mehr mit muss nach nicht noch nur oder ohne schon sein sich sie sind soll steht und vom von vor war wer
wenn wie wird wort wörter zum zur zwei drei vier
aux avec avoir bien ces cette dans des deux elle est être faire font les leur mais mot mots nous par pas plus pour qui
que quatre sans ses sont sur tous tout très trois une vous votre
como con cuatro del desde dos ella esta este está frase hay los las más muy nada palabra palabras para pero por puede
que ser sin sobre son sus todo tres una unas usar
alla anche che come con cui dalla dei del della delle deve gli nel nella non parola parole per più può quattro quella
sono sua tutte una
dos ela ele está foi isso mais mas muito não nas nos pela pelo por quatro que sem ser seu sua têm uma você
een het niet maar met naar ook van voor wordt zijn moet
"""
_SENTENCE_WORDS = frozenset(_SENTENCE_WORDS_LIST.split())


def is_word_passphrase(value: str) -> bool:
    """Return whether `value`, four or more words after the name of a passphrase, is one.

    No word of a passphrase belongs to a sentence.
    """
    words = value.split(" ")
    if value != value.lower() or len({*words}) < len(words):
        return False
    return not any(word in _SENTENCE_WORDS or word in _COMPOUND_PARTS or _PARTICIPLE.match(word) for word in words)


def _is_word_secret(value: str, strength: NameStrength, form: ValueForm) -> bool:
    """Return whether a value of letters only is a passphrase, not a word of the sentence or a variable."""
    if form in {ValueForm.PROSE, ValueForm.BARE}:
        return _is_passphrase(value, strength) or _is_jumbled(value)
    if strength is NameStrength.STRONG:
        return True
    return len(value) >= (10 if strength is NameStrength.MEDIUM else 20) and _LETTERS.match(value) is not None


def _is_passphrase(value: str, strength: NameStrength) -> bool:
    """Return whether words joined by hyphens are a passphrase, not a compound: `correct-horse`, not `read-only`.

    Three words are required if the name is not that of a password.
    """
    parts = value.lower().split("-")
    if len(parts) < (2 if strength is NameStrength.STRONG else 3) or len(value) < _MIN_PASSPHRASE:
        return False
    if value != value.lower() and len(parts) < 3:
        # German writes such compounds with capitals
        return False
    plain = all(len(part) >= 3 and part.isalpha() and part not in _COMPOUND_PARTS for part in parts)
    return plain and not _DESCRIPTIVE.match(value) and not _PARTICIPLE.match(parts[-1])


def _is_jumbled(value: str) -> bool:
    """Return whether letters are neither a word nor a name in camel case: `xKqRtVbnM`, `qwrtzpsd`."""
    if not value.isalpha() or not value.isascii() or len(value) < 8 or value.isupper() or _CODE_WORD.search(value):
        return False
    parts = _CASED.findall(value)
    return len(value) < _MAX_JUMBLED_PART * len(parts) or _CONSONANTS.search(value) is not None


def _is_prose_secret(value: str, strength: NameStrength) -> bool:
    if _DESCRIPTIVE.match(value) or _VERSION.match(value):
        return False
    if strength is NameStrength.STRONG:
        return not _NUMBERS.match(value) or value.isdigit()
    last = value.lower().rpartition("-")[2]
    if last != value.lower() and (last in _COMPOUND_PARTS or _PARTICIPLE.match(last)):
        return False
    return _HAS_DIGIT.search(value) is not None and _HAS_LETTER.search(value) is not None


def _is_bare_secret(value: str, strength: NameStrength) -> bool:
    if _IDENTIFIER.match(value) and ("." in value or ":" in value or "->" in value or _CODE_WORD.search(value)):
        return False
    if strength is NameStrength.STRONG:
        return True
    last = value.lower().rpartition("-")[2]
    if last != value.lower() and (last in _COMPOUND_PARTS or _PARTICIPLE.match(last)):
        return False
    return _HAS_DIGIT.search(value) is not None and _HAS_LETTER.search(value) is not None and not _SNAKE.match(value)
