"""Correction cues of languages that have no full pack: setting something right is the one act worth missing nowhere.

Each row holds the patterns and whether the script has word edges.
"""

from collections.abc import Mapping

__all__ = ["CORRECTIONS"]

CORRECTIONS: Mapping[str, tuple[str, bool]] = {
    "nl": (
        r"""
^(?:nee|wacht)[,.! ]+(?:eigenlijk|dat|ik|we|niet|gebruik|het)
(?:dat (?:klopt niet|is (?:fout|onjuist|niet (?:juist|waar)))|ik bedoelde|niet .{1,60},? maar (?:wel )?)
""",
        True,
    ),
    "pl": (
        r"""
^(?:nie|czekaj)[,.! ]+(?:właściwie|to|użyj|chodziło)
(?:to (?:nieprawda|błąd|źle|nie tak)|miałem na myśli|miałam na myśli|nie .{1,60},? (?:tylko|lecz))
""",
        True,
    ),
    "ru": (
        r"""
^(?:нет|подожди|стой)[,.! ]+(?:на самом деле|это|я|мы|не|используй)
(?:это (?:неверно|неправильно|не так|ошибка)|я имел[аи]? в виду|не .{1,60}, а )
""",
        True,
    ),
    "sv": (
        r"""
^(?:nej|vänta)[,.! ]+(?:egentligen|det|jag|vi|använd)
(?:det (?:är fel|stämmer inte)|jag menade|inte .{1,60},? utan)
""",
        True,
    ),
    "tr": (
        r"""
^(?:hayır|dur)[,.! ]+(?:aslında|bu|ben|biz|kullan)
(?:bu (?:yanlış|doğru değil)|demek istediğim|yanlış anladın)
""",
        True,
    ),
    "ko": (
        r"""
^(?:아니요?|아닙니다|잠깐)[,. ]
(?:틀렸|잘못 (?:이해|알)|제 말은|내 말은|이 아니라|가 아니라|말고)
""",
        False,
    ),
}
