"""Languages of which few phrases are known, one value each; a language that grows gets a file of its own."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACKS"]


PACKS = (
    LanguagePack(
        code="nl",
        name="Dutch",
        phrases={
            "name_particle": "van",
            "given_name_particle": "van",
            "acknowledgement": "dank je|dank je wel|bedankt|begrepen|duidelijk|oké",
            "negation": "niet|geen",
        },
        cues={
            "correction": r"""
^(?:nee|wacht)[,.! ]+(?:eigenlijk|dat|ik|we|niet|gebruik|het)
(?:dat (?:klopt niet|is (?:fout|onjuist|niet (?:juist|waar)))|ik bedoelde|niet .{1,60},? maar (?:wel )?)
""",
        },
        signals={
            "correction": r"""
^(?:nee|wacht)[,.! ]+(?:eigenlijk|dat|ik|we|niet|gebruik|het)
(?:dat (?:klopt niet|is (?:fout|onjuist|niet (?:juist|waar)))|ik bedoelde|niet .{1,60},? maar (?:wel )?)
""",
        },
        mentioned=r"\b(?:als|zegt|zei|staat|melding|knop|hij|zij)\b",
    ),
    LanguagePack(
        code="pl",
        name="Polish",
        phrases={
            "acknowledgement": "dzięki|dziękuję|jasne|rozumiem|dobrze|tak",
            "negation": "nie",
        },
        cues={
            "correction": r"""
^(?:nie|czekaj)[,.! ]+(?:właściwie|to|użyj|chodziło)
(?:to (?:nieprawda|błąd|źle|nie tak)|miałem na myśli|miałam na myśli|nie .{1,60},? (?:tylko|lecz))
""",
        },
        signals={
            "correction": r"""
^(?:nie|czekaj)[,.! ]+(?:właściwie|to|użyj|chodziło)
(?:to (?:nieprawda|błąd|źle|nie tak)|miałem na myśli|miałam na myśli|nie .{1,60},? (?:tylko|lecz))
""",
        },
        mentioned=r"\b(?:jeśli|mówi|powiedział|powiedziała|napis|komunikat|on|ona)\b",
    ),
    LanguagePack(
        code="sv",
        name="Swedish",
        phrases={
            "acknowledgement": "tack|tack så mycket|förstått|okej",
            "negation": "inte",
        },
        cues={
            "correction": r"""
^(?:nej|vänta)[,.! ]+(?:egentligen|det|jag|vi|använd)
(?:det (?:är fel|stämmer inte)|jag menade|inte .{1,60},? utan)
""",
        },
        signals={
            "correction": r"""
^(?:nej|vänta)[,.! ]+(?:egentligen|det|jag|vi|använd)
(?:det (?:är fel|stämmer inte)|jag menade|inte .{1,60},? utan)
""",
        },
        mentioned=r"\b(?:om|säger|sa|står|meddelande|knapp|han|hon)\b",
    ),
    LanguagePack(
        code="tr",
        name="Turkish",
        phrases={
            "acknowledgement": "teşekkürler|teşekkür ederim|tamam|anladım|sağ ol",
        },
        cues={
            "correction": r"""
^(?:hayır|dur)[,.! ]+(?:aslında|bu|ben|biz|kullan)
(?:bu (?:yanlış|doğru değil)|demek istediğim|yanlış anladın)
""",
        },
        signals={
            "correction": r"""
^(?:hayır|dur)[,.! ]+(?:aslında|bu|ben|biz|kullan)
(?:bu (?:yanlış|doğru değil)|demek istediğim|yanlış anladın)
""",
        },
        mentioned=r"\b(?:eğer|diyor|dedi|yazıyor|mesaj|düğme)\b",
    ),
    LanguagePack(
        code="da",
        name="Danish",
        phrases={
            "negation": "ikke",
        },
    ),
)
