"""What passwords, tokens and keys are called in other languages, and the words that say in them what one is.

A name is looked for only in a text that has one of the hints, so that most texts cost one short search.
"""

import re

from ricordo.guard.values import NameStrength

__all__ = ["PURPOSE_WORDS", "IS_WORDS", "find_foreign_names", "foreign_name_strength"]

IS_WORDS = (
    "was|is|are|ist|war|lautet|lauten|heißt|est|c['’]est|sera|était|es|era|será|é|è|sarà|är|er|var|jest|brzmi|on|to|"
    "to jest|zijn|este|je|on|olur|adalah|là|это|был|будет"
)
"""Words between a name and its value, in the languages of the names."""

PURPOSE_WORDS = (
    r"(?:for|to|of|on|at|für|vom?|zu[mr]?|de[rsl]?|dell[aeo]?|dell['’]|d['’]|di|da|do|du|para|pour|per|pro|voor|van|ke?|"
    r"från|för|till|dla|od|от|для|к|на|в|wi-?fi|wlan|root|admin)"
)
"""Words that begin what a secret is for: "the password for staging"."""

_STRONG_FOREIGN = r"""
mots? de passe
parola(?: d['’]ordine)?
passord(?:et)?
lösenord(?:et)?
contraseñas?
парол(?:[ьяюи]|ем)
hasło
şifre(?:si|niz|m)?
jelszó
κωδικός(?: πρόσβασης)?
mật khẩu
密码
密碼
口令
密钥
密鑰
令牌
パスワード
暗証番号
비밀번호
암호
รหัสผ่าน
पासवर्ड
סיסמה
كلمة المرور
(?<!\w)adgangskoden?
(?<!\w)hesl(?:o|em)
(?<!\w)salasanan?[ai]?
(?<!\w)salasanani
(?<!\w)kata sandi(?:nya)?
(?<!\w)zugangscode
hasłem
(?<!\w)пин-?код[аы]?
wi-?fi[- ]schlüssel|wlan[- ]schlüssel
"""
_MEDIUM_FOREIGN = r"""
(?:api|zugangs|geheim)[- ]?schlüssel|schlüssel (?:für|zu[rm]?|der|von) (?:(?:die|der|das) )?api
clés? (?:de l['’])?(?:api|secrète|privée|d['’]accès)
(?<!palabra )(?<!palabras )claves?(?: (?:api|secreta|privada|de (?:la )?(?:api|acceso)))?
chiave (?:api|segreta|privata|di accesso)
chave (?:api|secreta|privada|de (?:api|acesso))
ключ[аи]? (?:api|доступа)|api[- ]ключ
токен[аы]?
トークン
apiキー
api ?金鑰
"""


def _compile_names(names: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{name})" for name in names.strip().splitlines()), re.IGNORECASE)


_FOREIGN_NAMES = (
    (NameStrength.STRONG, _compile_names(_STRONG_FOREIGN)),
    (NameStrength.MEDIUM, _compile_names(_MEDIUM_FOREIGN)),
)
_FOREIGN_ASCII_HINTS = (
    b"clave",
    b"parola",
    b"chiave",
    b"chave",
    b"adgangskode",
    b"hesl",
    b"salasana",
    b"kata sandi",
    b"zugangscode",
)
# One search for all of them: each begins with a letter that is rare in its languages, so most texts are passed quickly.
_FOREIGN_HINT = re.compile(
    "ösen|ÖSEN|ña(?<=aseña)|ÑA(?<=ASEÑA)|üssel|ÜSSEL|é (?:api|API|secr|priv|d.acc|de l)|és (?:api|API|secr|priv|d.acc)"
    "|ó(?<=elszó)|ł[eo](?<=as..)|ŁO(?<=HASŁO)|şifre|Şifre|ŞİFRE|парол|Парол|ПАРОЛ|пин|Пин|ПИН|ключ|Ключ|КЛЮЧ|токен|Токен|ТОКЕН|κωδικ"
    "|Κωδικ|ật kh|密码|密碼|口令|密钥|密鑰|令牌|金鑰|スワー|暗証|トークン|キー|비밀|암호|รหัส|पासव|סיסמ|المرور"
)


def find_foreign_names(text: str, low: bytes) -> list[tuple[int, int, NameStrength]]:
    """Return where names of other languages stand in `text`, in order; `low` is its lower-cased view in bytes."""
    plain = (b"pass" in low and (b"de passe" in low or b"passord" in low)) or any(
        hint in low for hint in _FOREIGN_ASCII_HINTS
    )
    if not plain and (text.isascii() or _FOREIGN_HINT.search(text) is None):
        return []
    return sorted(
        (match.start(), match.end(), strength)
        for strength, pattern in _FOREIGN_NAMES
        for match in pattern.finditer(text)
    )


def foreign_name_strength(name: str) -> NameStrength | None:
    """Return how surely `name`, as a whole, is such a name; None if it is not."""
    return next((strength for strength, pattern in _FOREIGN_NAMES if pattern.fullmatch(name)), None)
