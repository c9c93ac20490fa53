"""Languages of which few phrases are known, one value each; a language that grows gets a file of its own."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACKS"]


PACKS = (
    LanguagePack(
        code="nl",
        name="Dutch",
        words={
            "function": """
ik jij hij wij het een niet maar voor naar van ook nog zijn heeft wordt kan moet altijd nooit deze dit mijn
onze geen dat er bij
""",
            "name_part": "van",
            "dummy_secret": "wachtwoord verplicht vereist optioneel onjuist verlopen leeg onbekend",
            "not_passphrase": "een het niet maar met naar ook van voor wordt zijn moet",
            "secret_identifier": "wachtwoord",
        },
        phrases={
            "name_particle": "van",
            "given_name_particle": "van",
            "acknowledgement": "dank je|dank je wel|bedankt|begrepen|duidelijk|oké",
            "negation": "niet|geen",
            "password_name": "wachtwoord",
            "secret_is_foreign": "zijn",
            "secret_purpose": "voor|van",
            "user_and": "en",
            "secret_lead": "ze|met",
            "secret_column": "wachtwoord",
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
        words={
            "function": """
i w na z do nie tak jest są się że jak ale już tylko po od dla przez przy co to ja ty my oni mnie mam masz ma
mój moja nasz nasza ten ta zawsze nigdy może jeszcze bez bo więc oraz czy kiedy gdzie
""",
            "dummy_secret": "wymagane opcjonalne nieprawidłowe",
        },
        tables={"day": "0 = dziś|dzisiaj; -1 = wczoraj; 1 = jutro; -2 = przedwczoraj; 2 = pojutrze"},
        phrases={
            "acknowledgement": "dzięki|dziękuję|jasne|rozumiem|dobrze|tak",
            "negation": "nie",
            "no_in_reply": "nie",
            "strong_secret_name": r"""
hasło
hasłem
""",
            "secret_name_hint": "ł[eo](?<=as..)|ŁO(?<=HASŁO)",
            "secret_is_foreign": "jest|brzmi|to|to jest",
            "secret_purpose": "dla",
            "secret_lead": "z",
            "secret_column": "hasło",
            "pin_is": "jest",
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
        words={
            "function": """
och jag det är inte att som på för med har vi du den ett av till mitt min alltid aldrig bara också kan ska
från hos men eller
""",
            "dummy_secret": "krävs obligatoriskt valfritt",
        },
        phrases={
            "acknowledgement": "tack|tack så mycket|förstått|okej",
            "negation": "inte",
            "no_in_reply": "nej",
            "strong_secret_name": "lösenord(?:et)?",
            "secret_name_hint": "ösen|ÖSEN",
            "secret_is_foreign": "är|var",
            "secret_purpose": "från|för|till",
            "secret_lead": "med",
            "pin_is": "är",
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
        words={
            "function": """
ve bir bu için ile değil ben sen biz çok daha ama var yok her zaman hiç benim bizim olarak gibi kadar
""",
            "dummy_secret": "zorunlu gerekli isteğebağlı",
        },
        phrases={
            "acknowledgement": "teşekkürler|teşekkür ederim|tamam|anladım|sağ ol",
            "no_in_reply": "hayır",
            "strong_secret_name": "şifre(?:si|niz|m)?",
            "secret_name_hint": "şifre|Şifre|ŞİFRE",
            "secret_is_foreign": "olur",
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
        words={
            "function": """
og jeg det er ikke at som på for med har vi du den et af til mit min altid aldrig kun også kan skal fra hos
men eller
""",
            "dummy_secret": "påkrævet valgfritt",
        },
        phrases={
            "negation": "ikke",
            "strong_secret_name": r"(?<!\w)adgangskoden?",
            "secret_name_ascii": "adgangskode",
            "secret_lead": "med",
        },
    ),
    LanguagePack(
        code="no",
        name="Norwegian",
        words={
            "function": """
og jeg det er ikke at som på for med har vi du den et av til mitt min alltid aldri bare også kan skal fra hos
men eller
""",
            "dummy_secret": "påkrevd",
        },
        phrases={
            "strong_secret_name": "passord(?:et)?",
            "secret_name_ascii": "passord",
            "secret_is_foreign": "er",
            "pin_is": "er",
        },
    ),
    LanguagePack(
        code="fi",
        name="Finnish",
        words={
            "function": """
ja minä se on ei että joka olen meillä minun mutta tai aina vain myös kanssa kun jos nyt ovat oli
""",
            "dummy_secret": "pakollinen",
        },
        phrases={
            "strong_secret_name": r"""
(?<!\w)salasanan?[ai]?
(?<!\w)salasanani
""",
            "secret_name_ascii": "salasana",
            "secret_is_foreign": "on",
        },
    ),
    LanguagePack(
        code="cs",
        name="Czech",
        words={
            "function": """
a já je není že který na v s do pro mám máme můj moje náš vždy nikdy jen také ale nebo když jsem jsou bylo
""",
            "dummy_secret": "vyžadováno povinné nepovinné",
        },
        phrases={
            "strong_secret_name": r"(?<!\w)hesl(?:o|em)",
            "secret_name_ascii": "hesl",
            "secret_is_foreign": "je",
            "secret_purpose": "pro|ke?|od",
        },
    ),
    LanguagePack(
        code="hu",
        name="Hungarian",
        words={
            "function": """
és én az egy nem hogy van vagyok meg csak mindig soha már még ez azt de vagy ha nálunk
""",
        },
        phrases={
            "strong_secret_name": "jelszó",
            "secret_name_hint": "ó(?<=elszó)",
            "secret_lead": "het",
        },
    ),
    LanguagePack(
        code="el",
        name="Greek",
        scripts=frozenset({"greek"}),
        phrases={
            "strong_secret_name": "κωδικός(?: πρόσβασης)?",
            "secret_name_hint": "κωδικ|Κωδικ",
        },
    ),
    LanguagePack(
        code="vi",
        name="Vietnamese",
        phrases={
            "strong_secret_name": "mật khẩu",
            "secret_name_hint": "ật kh",
            "secret_is_foreign": "là",
        },
    ),
    LanguagePack(
        code="th",
        name="Thai",
        scripts=frozenset({"thai"}),
        edges=False,
        phrases={
            "strong_secret_name": "รหัสผ่าน",
            "secret_name_hint": "รหัส",
            "secret_is_plain": r"(?:[\u0e00-\u0e4e]{0,20}?|[ \t][\w.-]{1,20}[ \t])คือ(?=[ \t]?[!-~])",
        },
    ),
    LanguagePack(
        code="he",
        name="Hebrew",
        scripts=frozenset({"hebrew"}),
        phrases={
            "strong_secret_name": "סיסמה",
            "secret_name_hint": "סיסמ",
        },
    ),
    LanguagePack(
        code="id",
        name="Indonesian",
        words={
            "function": """
dan saya aku ini itu tidak yang di ke dari untuk dengan ada kami kita selalu jangan pernah hanya juga tapi
atau
""",
            "dummy_secret": "wajib",
        },
        phrases={
            "strong_secret_name": r"(?<!\w)kata sandi(?:nya)?",
            "secret_name_ascii": "kata sandi",
            "secret_is_foreign": "adalah",
        },
    ),
    LanguagePack(
        code="ro",
        name="Romanian",
        words={
            "function": """
și eu este nu că care pe în cu din pentru am avem meu mea nostru mereu niciodată doar dar sau dacă sunt la
""",
        },
        phrases={
            "secret_is_foreign": "este",
        },
    ),
)
