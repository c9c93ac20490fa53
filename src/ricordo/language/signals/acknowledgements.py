"""Words that only say "heard": a message made of nothing else teaches nothing, unless it answers a question."""

import re
import unicodedata

__all__ = ["is_acknowledgement"]

_SPACED = r"""
ok|okay|okey|k|kk|okie|alright|all right|got it|gotcha|noted|understood|i see|makes sense|sounds good|will do|fine
cool|sure|thanks|thank you|thanks a lot|thanks so much|many thanks|thank you so much|thank you very much|thx|ty
  |cheers
yes|yep|yeah|yup|right|great|nice|good|very good|perfect thanks|no problem|np|much appreciated
danke|danke dir|danke schön|dankeschön|vielen dank|besten dank|alles klar|verstanden|ja|gut|in ordnung|passt|super
prima|klar|genau|merci|merci beaucoup|d'accord|ça marche|compris|bien reçu|entendu|oui|très bien|parfait merci
c'est noté|super merci|gracias|muchas gracias|mil gracias|vale|de acuerdo|entendido|está bien|sí|si|bien|muy bien
perfecto gracias|claro|listo|grazie|grazie mille|va bene|ho capito|capito|d'accordo|sì|bene|molto bene|ricevuto
perfetto grazie|chiaro|obrigado|obrigada|muito obrigado|muito obrigada|valeu|tá bom|está bem|beleza|entendi|certo
sim|combinado|tudo bem|dank je|dank je wel|bedankt|begrepen|duidelijk|oké|dzięki|dziękuję|jasne|rozumiem|dobrze
tak|tack|tack så mycket|förstått|okej|teşekkürler|teşekkür ederim|tamam|anladım|sağ ol
спасибо|большое спасибо|понял|поняла|понятно|ясно|хорошо|ок|окей|ладно|да|принято|благодарю
네|넵|예|응|알겠습니다|알겠어요|알았어|알았어요|감사합니다|고마워|고마워요|고맙습니다|좋아요|확인했습니다|오케이
شكرا|شكرا جزيلا|شكراً|شكراً جزيلاً|شكرا لك|حسنا|حسناً|تمام|فهمت|مفهوم|نعم|طيب
धन्यवाद|शुक्रिया|ठीक है|ठीक|अच्छा|समझ गया|समझ गई|जी|हाँ|हां|बहुत धन्यवाद
"""
_UNSPACED = (
    "好的呢|好的|好滴|好嘞|好吧|好|嗯嗯|嗯|谢谢你|谢谢您|謝謝|谢谢|感谢|感謝|多谢|多謝|对的|对|對|是的|收到|明白了|明白|了解了|了解|"
    "知道了|懂了|没问题|沒問題|可以|行|辛苦了|わかりました|分かりました|わかった|了解です|了解しました|承知しました|はい|"
    "ありがとうございます|ありがとうございました|ありがとう|どうも|なるほど|うん|オーケー|ok"
)
_MAX_ACKNOWLEDGEMENT_CHARS = 80


def _normalize(text: str) -> str:
    """Letters and spaces only, small, composed: "OK, thanks! 🙏" becomes "ok thanks"."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").strip()
    kept = "".join(
        char if char.isalnum() or char == "'" or unicodedata.combining(char) or _is_mark(char) else " "
        for char in plain
    )
    return " ".join(kept.split())


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Mc"}


_SPACED_PHRASES = "|".join(
    re.escape(_normalize(phrase))
    for phrase in sorted(
        (phrase for line in _SPACED.split("\n") for phrase in line.split("|") if phrase), key=len, reverse=True
    )
)
_ACKNOWLEDGEMENT = re.compile(rf"(?:{_SPACED_PHRASES})(?: (?:{_SPACED_PHRASES})){{0,5}}|(?:(?:{_UNSPACED}) ?){{1,6}}")


def is_acknowledgement(text: str) -> bool:
    """Say whether a text is nothing but "ok", "thanks" and the like, in any of some twenty languages.

    Punctuation and emoji do not count. A text of signs alone ("👍") is one; an empty text is none.
    """
    if not text.strip() or len(text) > _MAX_ACKNOWLEDGEMENT_CHARS:
        return False
    plain = _normalize(text)
    return not plain or _ACKNOWLEDGEMENT.fullmatch(plain) is not None
