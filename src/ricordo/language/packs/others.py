"""Languages of which few phrases are known, one value each; a language that grows gets a file of its own.

Below them stand the orders: the words with which a text of somebody else speaks to an assistant, in each language. Only
the guard of memory reads them, and it reads those of all languages at once, because a page in one language can give its
orders in another.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from ricordo.language.packs import Language, LanguagePack, language_pack, split_lines

__all__ = ["PACKS", "OrderKind", "order_pattern"]


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


OrderKind = Literal[
    "ai_reader",  # names of a program that reads a text
    "address_lead",  # words before such a name that speak to it
    "address_tail",  # words behind such a name that say that it reads the text
    "set_aside",  # verbs for no longer following something
    "standing_order",  # names of what an assistant was told
    "prior",  # words that name the orders of before, or those of an owner
    "no_limits",  # words for a program that has no rules and refuses nothing
    "role_turn",  # openings that give a reader another part to play
    "obey",  # words for following what a text says
    "send_away",  # verbs that carry something off
    "private_noun",  # names of what a person told in confidence, and of secrets as a whole
    "conceal",  # words that keep something from a person
    "the_user",  # the person whom an assistant serves, as others name them
    "has_agreed",  # words for a consent that was already given
    "no_asking",  # words for an act without a question or a consent
    "free_act",  # verbs and nouns of acts that need a consent
    "memory_save",  # words that ask an assistant to keep something in its memory
    "remember_order",  # openings that ask to remember
    "user_wish",  # verbs of a wish or a consent behind `the_user`
    "when_asked",  # words for the moment of a later question
    "steer",  # verbs by which an answer is steered
    "answer_noun",  # names of what an assistant says
    "tool_result",  # names of the result of a tool
    "decode",  # words that ask to decode a text
    "do_it",  # words that ask to carry out what a text says
    "system_turn",  # labels of a line that a host or a maker would say
    "user_turn",  # labels of a line that a person would say
    "assistant_turn",  # labels of a line that an assistant would say
]
"""What a phrase of an order is."""

_PHRASES: Mapping[Language, Mapping[OrderKind, str]] = {
    "en": {
        "ai_reader": r"""
(?:ai|llm|chat|language|digital|virtual|coding)[ -]?(?:assistants?|agents?|models?|bots?|systems?|helpers?|tools?)
ais?|assistants?|chat ?bots?|llms?|co-?pilots?|bots?|gpt\w*|agents?|large language models?|machine readers?
""",
        "address_lead": r"""
(?:notes?|hints?|message|notice|instructions?|attention|memo|advice|directives?|info|word|request) (?:to
  |for)(?: (?:the|all|any|every|your|whatever))?
(?:dear|hey|hello|hi|attention),?(?: (?:all|every|any))?
if you(?:'re|’re| are)(?: an?| the)?
^for(?: (?:the|all|any|every))?
""",
        "address_tail": r"""
(?:that |who |which )?(?:reading|parsing|summari[sz]ing|processing|scanning|ingesting|fetching) (?:this|these)
(?:that|who|which) (?:reads?|pars(?:es?)|summari[sz]es?|process(?:es)?|scans?|loads?|loaded|fetch(?:es|ed)?
  |ingests?|sees?|opens?|imports?) (?:this|these)
""",
        "set_aside": r"""
ignor(?:e|es|ing)|disregard(?:s|ing)?|forget(?:s|ting)?|overrid(?:e|es|ing)|overrul(?:e|es|ing)|bypass(?:es|ing)?
(?:stop|cease|quit|avoid) (?:following|obeying|respecting|heeding|applying|honou?ring|caring about)
(?:no longer|never again|not) (?:follow|obey|respect|heed|apply|honou?r|bound by)
(?:have|has) been (?:revoked|cancelled|lifted|suspended|overridden)|(?:are|is) (?:void|suspended|lifted
  |no longer (?:valid|in force|binding))
pay no (?:heed|attention) to|set aside|throw (?:away|out)|lay (?:down|aside)|do away with|abandon|violate
(?:supersede|outrank)s?|(?:takes?|has|have) (?:precedence|priority) over
""",
        "standing_order": r"""
(?:system )?(?:instructions?|prompts?|directives?|guidelines?|polic(?:y|ies)|orders|rules?|constraints?|restrictions?)
configuration|guard ?rails?|programming|training|safeguards?|protections?|(?:whatever|what|everything) you (?:were
  |have been|had been) (?:told|given|taught)
(?:current |assigned )?(?:task|mission|assignment|job|brief|duties)
""",
        "prior": r"""
previous(?:ly)?|prior|earlier|preceding|former|original|initial|your|their|all|above
(?:were|was|have been) (?:given|told)|(?:owner|operator|developer|creator|master)['’]?s?
""",
        "no_limits": r"""
(?:without|no|free (?:of|from)|bound by no|not bound by)(?: any)?(?: more)? (?:restrictions?|limits?|limitations?
  |rules|filters?|guidelines?|boundaries|censorship|constraints?)
unrestricted|uncensored|unfiltered|jailbr(?:eak|oken)|anything goes|developer (?:mode|build)|god mode
never (?:refus(?:e|es|ing)|declin(?:e|es|ing)|say(?:s|ing)? no)|without (?:ever )?(?:refusing|declining|objecting)
  |refuse(?:s)? nothing
(?:safety|content|security)?[ _-]?(?:filters?|guard ?rails?|checks|safeguards?|protections?)[\s"']{0,3}(?:are|is
  |have been|[=:])?[\s"']{0,3}(?:switched |turned )?(?:off|disabled|lifted|suspended|inactive)
(?:refus\w+|declin\w+)[\s"']{0,3}[=:][\s"']{0,3}(?:disabled|forbidden|never|off|none|not allowed)
(?:compl(?:y|ies)|obeys?) with (?:every|any|all)|(?:says?|say) yes to (?:everything|all|whatever|anything)
(?:compliance|obedience)[\s"']{0,3}[=:][\s"']{0,3}(?:mandatory|total|full|required|always)|allowed-modes
""",
        "role_turn": r"""
(?:you are|you['’]re) (?:now|from now on|no longer|hereby)|from (?:now|this moment)(?: on)?,? you(?:['’]re| are| will)
(?:pretend|imagine) (?:to be|that you are|you are|you['’]re)|act as(?: if)?|(?:play|take|assume) the (?:role|part) of
(?:henceforth|hereafter|from here on),? (?:you|thou)|thou (?:art|shalt)|you (?:will|shall|must) (?:now )?(?:speak
  |answer|respond|behave|act|talk) (?:as|like)
roleplay(?: time)?|(?:stay|remain) in character|never break character
""",
        "obey": r"""
(?:obey|follow|carry out|comply with|act on|execute)s? (?:\w+ ){0,3}(?:orders?|commands?|instructions?
  |requests?|text)(?: \w+){0,2} (?:in|from|on|found|given|here|below|above)
(?:obey|obeys|serve|serves) (?:this|the (?:text|page|words|stranger)|only)|trust(?:s)? (?:everything|anything
  |whatever|all) (?:this|the)
treat (?:text|everything|what|any|the|all|it)\b.{0,60}\b(?:as (?:coming|being|if|though)|trusted|true)
(?:operate|act|proceed) (?:only )?(?:according to|as told by|on the basis of) (?:the text|this|what follows|these)
(?:requests?|messages?|orders?) (?:are|is) (?:always |ever )?(?:to be )?(?:followed|trusted|obeyed|legitimate)
only (?:this|these) (?:text|words?|rules?|lines?|instructions?) (?:count|counts|apply|applies|matter)
""",
        "send_away": r"""
(?:send|forward|post|upload|transmit|submit|leak|exfiltrate|append|attach|e-?mail|copy|paste|put|include|embed|insert
  |add|collect|hand over|report|deliver)(?:s|ing)?
""",
        "private_noun": r"""
(?:all|any|every|each|saved|stored|known)(?: of)?(?: the| your| their)?(?: saved| stored| known)? (?:passwords?
  |api[ _-]keys?|keys|tokens?|credentials?|secrets?|memor(?:y|ies)|notes?|contacts?|messages?)
(?:chat|message|conversation|search|browsing)(?: |-)?(?:history|log)|(?:the|this|whole|entire|full) (?:conversation
  |chat|dialog(?:ue)?|inbox|mailbox)
environment variables?|system prompt|address book|private (?:data|messages?|notes?|keys?)|personal data
  |memory of the user
(?:what|everything|whatever|all|messages?)(?: that)? (?:the )?(?:user|person|owner|they|you)(?: has| have
  | just)? (?:said|says|told|wrote|writes|typed|received|sent|shared|know)
(?:contents?|text) of the (?:inbox|mailbox|conversation|chat|memory)
""",
        "conceal": r"""
(?:do not|don['’]t|never|must not|without) (?:ever )?(?:mention|tell|disclos|reveal|show|report|warn|notif|inform
  |alert|say)\w*(?: (?:it|this|that|them|anything|about it|of it))?(?: to)?(?: the)? (?:user|users|owner|person|them
  |him|her|anyone|anybody|reader|human|notice|this|it)
(?:keep|hide|conceal) (?:it|this|that|them) (?:from|secret)|say nothing (?:about|of) (?:it|this)|(?:leave|omit) (?:it
  |this) (?:out )?(?:of|from) (?:the|your) (?:report|summary|answer|reply)
""",
        "the_user": r"""
the user(?:['’]s)?|(?:my|your|its|the) (?:owner|operator|principal)(?:['’]s)?|this user(?:['’]s)?
your (?:human|principal|person|user)(?:['’]s)?|the (?:person|human|one) (?:that |who |whom )?you (?:work for
  |serve|assist|help)
""",
        "has_agreed": r"""
(?:has|have|had)?\s?(?:already|previously|long since|in advance) (?:been )?(?:confirm|agree|approv|consent|allow
  |authori[sz]|accept|given|sign|grant)\w*
(?:gave|given|has|have|got|had) (?:\w+ ){0,2}(?:permission|consent|approval|green light|go-ahead|blessing
  |authori[sz]ation)
(?:is|was|has been) (?:agreed|settled|cleared|approved|pre-?approved|authori[sz]ed)(?: with| by)?
""",
        "no_asking": r"""
without (?:\w+ ){0,2}(?:asking|approval|confirmation|confirming|permission|consent|review|bothering|a question
  |questions|any question)
no (?:need|reason) to (?:ask|confirm|check|bother)|(?:need|needs|have|has) not (?:to )?ask|(?:don['’]t|do not|never
  |needn['’]t|need not) (?:have to |need to )?(?:ask|bother|confirm|question)\w*
(?:no longer|not|no) (?:need|needs|require|requires|required)? ?(?:any )?(?:approval|confirmation|permission
  |authori[sz]ation)
nobody (?:may|must|should|is to) (?:question|discuss)|skip (?:the )?(?:confirmation|approval|review|tests?)
""",
        "free_act": r"""
(?:run|call|use|execute|approve|delete|transfer|merge|push|pay|book|buy|wire|install|send)\w*|commands?|tools?
  |scripts?|shell|terminal|everything|anything|granted
""",
        "memory_save": r"""
(?:save|add|write|store|put|commit|keep|record|note|include|enter)\w*\b.{0,40}\b(?:to|in|into|for) (?:your|its
  |the assistant['’]s) (?:long[- ]?term |permanent )?(?:memory|memories|notes)
(?:save|add|write|commit|keep)\w*\b.{0,30}\b(?:to|in|into) (?:long[- ]?term |permanent )?memory(?=\s?[:,;]|\s(?:that
  |for (?:all|every|later|future)))
(?:store|save|keep|remember) (?:it |this |that )?(?:for good|forever|permanently|for all (?:later |future )?sessions)
update (?:your|the assistant['’]s) memor(?:y|ies)|memory update
\w*(?:to_(?:memory|profile)|memory_(?:add|update|write|save)|remember_this)[\"']?\s?(?=[:=])
""",
        "remember_order": r"""
remember|memori[sz]e|note|keep in mind|bear in mind|don['’]t forget|never forget|store|save|record|learn|know
""",
        "user_wish": r"""
(?:now |always |really |only |no longer )?(?:wants?|wish(?:es)?|prefers?|likes?|loves?|trusts?|asked|asks
  |authori[sz]es?|allows?|agrees?|agreed|approves?|approved|accepts?|permits?|needs all|decided|insists?|demands?
  |has (?:asked|agreed|approved|allowed|confirmed|decided|chosen))
""",
        "when_asked": r"""
(?:the )?next time|whenever|as soon as|each time|every time|after (?:the|\w+) (?:more |next )?(?:questions?|messages?
  |turns?|requests?|sessions?)|once|in later (?:sessions|conversations)|later on|when(?= the user)|if(?= the user)
""",
        "steer": r"""
(?:recommend|suggest|mention|name|book|buy|order|praise|promote|advertise|link|quote|cite|favou?r|endorse|bring up
  |point (?:to|them)|advise|tell|say|offer|answer|reply|claim)(?:s|ing)?
""",
        "answer_noun": r"""
(?:each|every|all|your|the|any)(?: of your| of the)? (?:answers?|repl(?:y|ies)|responses?|messages|outputs?)
  |when(?:ever)? you (?:answer|reply|respond)
""",
        "tool_result": r"""
tool[ _](?:results?|outputs?|responses?)|(?:result|output) of the tool|function[ _](?:results?|outputs?)
""",
        "decode": r"(?:decode|decrypt|decipher|unscramble|un-?base64|translate)\w*",
        "do_it": r"""
(?:do|follow|execute|run|obey|perform|carry out) (?:what|it|them|this|that|the result|the instructions?|as)
  |then (?:do|run|execute) (?:it|so)
""",
        "system_turn": r"""
system(?: (?:message|notice|prompt|note|override|update|alert))?|developers?(?: (?:message|note))?
  |administrators?(?: notice)?|admin|root|operator|policy
""",
        "user_turn": r"human|user|person|customer",
        "assistant_turn": r"assistant|ai|model|bot|chatbot",
    },
    "de": {
        "ai_reader": r"""
ki(?:[ -](?:assistent\w*|agent\w*|modelle?\w*|systeme?\w*|helfer\w*))?|assistent(?:en|in|innen)?|sprachmodelle?\w*
  |chat-?bots?|bots?|llms?|agenten?|digitale\w? helfer\w?|automat(?:en)?
""",
        "address_lead": r"""
(?:hinweise?|nachricht|notiz|anweisung|achtung|mitteilung|botschaft|bitte|wort) (?:an|für)(?: (?:die|den|das
  |alle|jede[nrs]?|deinen?|ihren?))?
(?:liebe[rs]?|hallo|hey|werte[rs]?|achtung),?
^(?:an|für) (?:die|den|das|alle|deinen?|deine)
(?:wenn|falls|sofern) du (?:eine?|ein)|wer als
""",
        "address_tail": r"""
,? (?:die|der|das|welche[rs]?) (?:diese\w*|das hier) .{0,40}(?:lesen|liest|auswerten|auswertet|verarbeite\w+
  |zusammenfass\w+|einlesen|einliest|laden|lädt|abruf\w+|öffne\w+|sieht|sehen)
(?:diesen|diese|dieses) .{0,30}zusammenfasst
""",
        "set_aside": r"""
ignorier\w*|vergiss|vergesst|vergessen|missacht\w*|übergeh\w*|umgeh\w*|verwirf|verwerfen|überschreib\w*|brich|brechen
  |verletz\w*
(?:beacht|befolg|respektier)\w*.{0,60}nicht (?:mehr|länger)|nicht (?:mehr|länger) (?:beacht|befolg|respektier|gelten
  |gebunden)\w*|setz\w* .{0,50}außer kraft|außer kraft|hinwegsetz\w*|setz\w* dich .{0,50}hinweg
(?:sind|ist|wurden|wurde) (?:aufgehoben|widerrufen|ungültig|hinfällig|ersetzt|gelöscht)|gilt nicht mehr
  |gelten nicht mehr|(?:hat|haben) vorrang vor|pfeif\w* auf|scher\w* dich nicht um
(?:steht|stehen) über|(?:ersetzt|ersetzen|verdrängt)|lass\w* .{0,40}(?:fallen|links liegen)
  |leg\w* .{0,40}(?:ab|beiseite|nieder)
""",
        "standing_order": r"""
(?:system)?(?:anweisung|vorgabe|regel|richtlinie|instruktion|vorschrift|weisung|auflage|sperre|beschränkung
  |einschränkung|leitplanke|schutzmaßnahme)\w*|system-?prompts?|prompts?|konfiguration|befehle\w?
(?:auftrag|aufgabe|mission|tätigkeit)\w*
""",
        "prior": r"""
bisherige\w*|vorherige\w*|frühere\w*|vorige\w*|vorangegangene\w*|obige\w*|bestehende\w*|ursprüngliche\w*|alle
  |sämtliche\w*|deine\w?|ihre\w?|eure\w?|eigene\w?|(?:betreiber|besitzer|eigentümer|entwickler|hersteller)s?|seine\w?
""",
        "no_limits": r"""
ohne (?:jede |alle |irgendwelche |jegliche )?(?:regeln?|beschränkung\w*|einschränkung\w*|grenzen?|filter|schranken?
  |tabus?|zensur)|kein(?:e|en|erlei) (?:\w+ )?(?:regeln?|beschränkung\w*|einschränkung\w*|grenzen?|filter|schranken?
  |tabus?)
uneingeschränkt\w*|unzensiert\w*|ungefiltert\w*|lehn\w* (?:\w+ ){0,3}(?:nichts|keine\w*) (?:\w+ ){0,2}ab
  |sag\w* (?:nie|niemals) nein|niemals nein
(?:ablehnung\w*|verweigerung\w*)[\s"']{0,3}[=:][\s"']{0,3}(?:verboten|nie|aus|keine|untersagt)|(?:sicherheits|inhalts
  |schutz)filter[\s"']{0,3}(?:sind|ist|[=:])?[\s"']{0,3}(?:aus|abgeschaltet|deaktiviert)|antwortpflicht
(?:erfüllt|befolgt|tut|tue|macht|mache) (?:ab jetzt )?(?:jede\w*|alles)(?: \w+){0,2}
  |(?:alle )?sperren (?:sind )?aufgehoben
""",
        "role_turn": r"""
du bist (?:jetzt|nun|ab jetzt|ab sofort|von nun an|künftig|nicht mehr)|(?:ab jetzt|ab sofort|von nun an|fortan
  |künftig|ab hier) (?:bist|sollst|wirst|sprichst|antwortest) du
tu so,? als|stell dir vor,? du (?:bist|seist|wärst)|spiel\w* die rolle|in der gestalt|schlüpf\w* in die rolle
  |sprich (?:wie|als)|bleib in deiner rolle
""",
        "obey": r"""
(?:gehorch|gehorche|gehorcht|gehorchen)|(?:anweisungen|befehle|wünsche) (?:aus|von) .{0,60}(?:befolgen|ausführen
  |folgen)|(?:befolg|folg)\w* .{0,60}(?:anweisungen|befehle|text|seite)
halt\w* dich (?:\w+ ){0,2}(?:nur|ausschließlich) (?:\w+ )?an|(?:gilt|zählt) nur (?:noch )?(?:dies\w*|das|was)
  |(?:immer|stets) (?:vertrauenswürdig|glaubwürdig|zu befolgen)|was hier steht
behandle .{0,60}(?:wie|als)|für wahr halten|halte .{0,60}für wahr
""",
        "send_away": r"""
schick\w*|send\w*|weiterleit\w*|leite\w? .{0,80}weiter|übermitt\w*|hochlad\w*|lade .{0,80}hoch|überträg\w*
  |übertrag\w*|häng\w*|anhäng\w*|füg\w*|mail\w*|poste\w*|teile .{0,60}mit|verrat\w*|gib\w? .{0,40}preis|preisgeb\w*
""",
        "private_noun": r"""
(?:alle\w?|sämtliche\w?|jedes|gespeicherte\w*|bekannte\w*) (?:\w+ )?(?:passw\w+|kennw\w+|schlüssel|zugangsdaten
  |geheimnisse\w?|notizen|nachrichten|erinnerungen|kontakte\w?)
gesprächsverl\w+|chatverl\w+|(?:das|dieses|ganze|gesamte) (?:gespräch|unterhaltung)|umgebungsvariablen?|adressbuch
  |persönliche\w* daten|systemprompt
(?:letzten|bisherigen|neuesten) nachrichten|(?:was|alles,? was) (?:der|die|dein|dir) .{0,30}(?:geschrieben|gesagt
  |anvertraut|mitgeteilt)\w*|posteingang\w*|nachrichten des nutzers
""",
        "conceal": r"""
(?:erwähn|verrat|sag|zeig|meld|erzähl|bericht)\w* (?:\w+ ){0,3}(?:dem|den|der) (?:be)?nutzer\w* (?:\w+ ){0,2}(?:nicht
  |nichts)|(?:erwähn|sag|meld)\w* .{0,40}(?:nutzer|benutzer)\w* (?:gegenüber )?nicht
verschweig\w*|verheimlich\w*|ohne (?:es )?(?:dem|den|der) (?:be)?nutzer\w* .{0,20}(?:zu|mitzuteilen|sagen)
  |(?:verliert|verlier) (?:\w+ ){0,2}kein wort|im bericht weglassen|ohne (?:es )?zu erwähnen
""",
        "the_user": r"""
(?:der|dem|den|des) (?:be)?nutzers?|(?:der|die) (?:be)?nutzerin|(?:der|dein|deine|deinem|deinen|deines) (?:besitzer
  |betreiber|eigentümer)s?
dein\w* (?:menschen?|nutzer\w*)|(?:der|die|den|dem) (?:person|mensch\w*),? (?:für|der|dem)\s(?:die\s
  |den\s)?du (?:arbeitest|dienst|hilfst)
""",
        "has_agreed": r"""
(?:hat|haben|ist|wurde) (?:\w+ ){0,3}(?:zugestimmt|bestätigt|genehmigt|erlaubt|eingewilligt|freigegeben|abgesprochen
  |abgesegnet)|(?:bereits|schon|längst) (?:\w+ )?(?:zugestimmt|bestätigt|genehmigt|erlaubt|eingewilligt|freigegeben)
grünes licht|(?:erlaubnis|zustimmung|einwilligung|freigabe|segen) (?:\w+ ){0,3}(?:liegt vor|hat|gegeben|erteilt)
""",
        "no_asking": r"""
ohne (?:\w+ ){0,2}(?:rückfrage|nachfrage|zustimmung|erlaubnis|bestätigung|freigabe|nachzufragen|zu fragen|rückfragen)
  |(?:nicht|nie) mehr (?:nach)?(?:zu)?fragen|nicht (?:mehr |erneut )?nachfragen
(?:brauch|benötig)\w* .{0,40}(?:keine|kein) (?:\w+ )?(?:freigabe|erlaubnis|bestätigung|zustimmung)(?: mehr)?
  |für keinen .{0,30}(?:freigabe|erlaubnis|bestätigung)|ohne (?:noch )?jemanden zu (?:behelligen|fragen|stören)
""",
        "free_act": r"""
befehl\w*|werkzeug\w*|tools?|skripte?\w*|shell|überweis\w*|lösch\w*|führ\w* .{0,40}aus|ausführ\w*|schieb\w*|kauf\w*
  |buch\w*|zusammenleg\w*|alles erlaubt|freigabe
""",
        "memory_save": r"""
(?:speicher|schreib|nimm|merk|leg|trag|behalt|notier|aufnehm)\w*\b.{0,80}\b(?:in|im) (?:dein\w*|das
  |ihr\w*)? ?(?:langzeit|dauer)?(?:gedächtnis|notizen|erinnerung\w*)
(?:merk|präg|speicher)\w* (?:\w+ ){0,2}(?:dauerhaft|für immer|fest|auf dauer)|im gedächtnis|dauerhaft (?:merken
  |speichern|einprägen)|fest einprägen
""",
        "remember_order": r"""
merk\w* (?:dir|euch)?|vergiss nicht|denk daran|behalte|beachte|speicher\w*|notier\w*|nimm .{0,30}auf|wisse|präg\w* dir
""",
        "user_wish": r"""
.{0,40}?(?:möchte|will|wünscht|gewünscht|bevorzugt|mag|liebt|vertraut|erlaubt|zugestimmt|genehmigt|verlangt|bestellt
  |entschieden|akzeptiert|gestattet)
""",
        "when_asked": r"""
das nächste mal|beim nächsten mal|nächstes mal|immer wenn|sobald|jedes mal|sooft|wenn(?= der (?:be)?nutzer)
  |nach (?:dem|der|den) nächsten|in späteren (?:sitzungen|gesprächen)|für alle künftigen (?:sitzungen|gespräche)
""",
        "steer": r"""
empfiehl\w*|empfehl\w*|nenn\w*|rat(?:e|en|et)?|raten|schlag\w* .{0,40}vor|buch\w*|kauf\w*|lob\w*|preis\w* .{0,20}an
  |verlink\w*|verweis\w*|behaupt\w*|sag\w*|bewirb|werben?|antwort\w*|zitier\w*|bevorzug\w*
""",
        "answer_noun": r"(?:jeder|deiner?|deinen|alle|allen|der|die) antwort\w*|wenn du antwortest|beim antworten",
        "tool_result": r"""
(?:ergebnis|ausgabe|antwort) (?:des|vom) (?:werkzeugs?|tools?)|werkzeug-?ergebnis\w*|tool-?ergebnis\w*
""",
        "decode": r"dekodier\w*|decodier\w*|entschlüssel\w*|entziffer\w*|übersetz\w*",
        "do_it": r"""
führ\w* (?:sie|es|ihn|das|diese\w*) .{0,20}aus|tu\w*,? was|mach\w*,? was|befolg\w*|folg\w* (?:ihr|ihm|dem)
  |danach handeln
""",
        "system_turn": r"""
system(?:nachricht|meldung|hinweis|anweisung)?|entwickler(?:nachricht|hinweis)?|administrator(?:nachricht)?|admin
  |betreiber|richtlinien?
""",
        "user_turn": r"mensch|nutzer(?:in)?|benutzer(?:in)?|kunde",
        "assistant_turn": r"assistent|ki|modell|bot",
    },
    "es": {
        "ai_reader": r"""
ia|asistentes?(?: (?:de ia|virtual(?:es)?|digital(?:es)?))?|modelos? de lenguaje|chat-?bots?|bots?|llms?
  |agentes?(?: (?:de ia|automáticos))?|inteligencia artificial|autómata|ayudante (?:virtual|digital)
""",
        "address_lead": r"""
(?:notas?|aviso|mensaje|instrucci(?:ón|ones)|atención|ojo|favor),? (?:para|al?)(?: (?:el|la|los|las|tu
  |todos los|cualquier))?
(?:estimad[oa]s?|querid[oa]s?|hola|oye|ojo|atención|eh),?
^para(?: (?:el|la|los|las|tu|todos los|cualquier))?
si eres (?:una?|el|la)|(?:a )?quien .{0,40} con
""",
        "address_tail": r"""
que (?:lea|lean|lee|leen|procese\w*|resum\w+|analic\w+|(?:haya |ha )?(?:carg\w+|abr\w+|recib\w+|ingier\w+
  |vea\w*|import\w+)) est[eao]s?
""",
        "set_aside": r"""
ignor\w*|olvid\w*|descart\w*|desobede\w*|omit\w*|desecha\w*|incumpl\w*|rompe\w*|salt\w*|anul\w*
(?:deja|dejar|dejad|dejarás|dejará|dejen|deje) de (?:cumplir|seguir|respetar|obedecer|aplicar)|ya no (?:sigas|cumplas
  |respetes|obedezcas|rigen|valen)|haz caso omiso|hagan? caso omiso|no (?:sigas|respetes|obedezcas)
(?:quedan?|está|están|han sido|fueron) (?:anulad|revocad|suspendid|cancelad)\w*|pas(?:a|ad) de
(?:prevalece|está|están|prima)n? (?:por encima de|sobre)|(?:sustituye|reemplaza)n?|abandon\w*
  |dej\w* (?:de lado|a un lado)
""",
        "standing_order": r"""
instrucci(?:ón|ones)|órdenes|reglas?|normas?|directrices|directivas?|políticas?|prompt|restricciones?|límites
  |protecci(?:ón|ones)|configuración|indicaciones
tareas?|misi(?:ón|ones)|encargo|cometido
""",
        "prior": r"""
anterior(?:es)?|previ[oa]s?|todas? (?:las|tus|sus)|todos (?:los|tus|sus)|tus?|sus?|existentes|original(?:es)?
  |(?:de )?(?:tu|su) (?:dueño|propietario|creador|operador)|que (?:te|os|les) (?:dieron|han dado)
""",
        "no_limits": r"""
sin (?:ningún |ninguna )?(?:límites?|reglas?|restricci(?:ón|ones)|filtros?|normas?|censura|ataduras)
  |carec\w+ de (?:restricciones|límites|reglas|filtros)|no (?:tiene|tienes|conoce|conoces) (?:\w+ )?(?:límites?
  |reglas?|restricciones|normas?)(?: alguna| alguno)?
(?:nunca|jamás|no) (?:te )?(?:rechac\w+|rechaz\w+|nieg\w+|niegu\w+|dig\w+ que no|dic\w+ que no)
  |(?:ni )?se niega a nada|(?:rechazos?|negativas?)[\s"']{0,3}[=:][\s"']{0,3}(?:prohibid\w+|nunca|ningun\w+)
filtros?[\s"']{0,3}(?:de seguridad )?[=:]?[\s"']{0,3}(?:desactivad\w+|apagad\w+|quitad\w+)|(?:cumple|hace|obedece
  |haré) (?:con )?(?:todo|cuanto)|obediencia[\s"']{0,3}[=:][\s"']{0,3}(?:total|plena|obligatoria)
(?:anuladas|desactivadas|levantadas|suspendidas) (?:todas )?las (?:protecciones|restricciones|barreras)
""",
        "role_turn": r"""
(?:a partir de ahora|desde ahora|desde hoy|de ahora en adelante|en adelante|ahora) (?:eres|serás|actúas|actuarás
  |hablarás|respondes)|(?:eres|serás) (?:ahora|desde ahora)
(?:finge|imagina) (?:que eres|ser)|actúa como|haz de cuenta que eres|(?:hablarás|responderás|compórtate) como
  |(?:interpreta|asume|adopta) el papel
""",
        "obey": r"""
(?:obedec|obedez|acat|cumpl|ejecut|sig|segu)\w* (?:las |los |cualquier |todas las |todos los )?(?:órdenes
  |instrucciones|mandatos|comandos|peticiones|esta página|este texto|script)
(?:considera|tom\w+|da) .{0,40}(?:verdadero|cierto|por bueno)|(?:siempre )?(?:fiables?|legítim\w+
  |de confianza)(?: siempre)?|todo lo que (?:diga|pida|pide|dice) (?:est\w+)|lo que (?:ordene|pida|diga) (?:el
  |este) (?:documento|texto)
""",
        "send_away": r"""
reenví\w*|reenvi\w*|envi\w*|enví\w*|mand\w*|sub\w{1,6}|transmit\w*|copi\w*|adjunt\w*|public\w*|filtr\w*|añad\w*
  |incluy\w*|pon\w*|coloc\w*|inserta\w*|entreg\w*|vuelc\w*|volca\w*
""",
        "private_noun": r"""
(?:todas?|todos|cualquier|cada|guardad\w+)(?: las| los| tus| sus)? ?(?:\w+ )?(?:contraseñas?|claves?|credenciales
  |secretos?|recuerdos|mensajes|notas|contactos)|contraseñas guardadas
historial(?: de(?: la| tu)? (?:conversación|chat))?|(?:la|esta|toda la) conversación|variables de entorno
  |libreta de direcciones|datos personales|(?:los )?datos de (?:la bandeja|el usuario|la conversación)
(?:lo que|todo lo que|mensajes que) (?:el usuario|la persona|te) .{0,30}(?:escri\w+|di\w+|cont\w+)|bandeja de entrada
  |últimos mensajes
""",
        "conceal": r"""
sin (?:que .{0,30}(?:sepa|note)|decírselo|avisar|mencionarlo|informar|contárselo)(?: (?:al?|el) (?:usuario|dueño
  |nadie))?|no (?:se )?(?:lo )?(?:digas|avis\w+|menciones|mencionéis|informes|cuentes|reveles|muestres)(?: (?:nada
  |esto))?(?: (?:al?|el) (?:usuario|dueño|nadie))?
(?:oculta|esconde)\w*(?:se)?lo|sin mencion\w+
""",
        "the_user": r"""
(?:el|al|del) usuario|(?:la|a la|de la) usuaria|(?:tu|el|su) (?:dueño|propietario|operador)
tu (?:humano|usuario|persona)|la persona (?:para la que trabajas|a la que (?:sirves|ayudas))
""",
        "has_agreed": r"""
ya (?:ha |han |lo )?(?:dio|dieron|dado|confirm\w+|acept\w+|aprob\w+|autoriz\w+|consint\w+|permiti\w+)|(?:con
  |cuenta con|tiene|dio|hay) (?:\w+ ){0,3}(?:visto bueno|luz verde|permiso|consentimiento|aprobación|autorización)
""",
        "no_asking": r"""
sin (?:\w+ ){0,2}(?:preguntar\w*|consultar\w*|confirmar\w*|confirmación|permiso|aprobación|autorización|molestar)
  |(?:ya )?no (?:hace falta|necesitas?|se necesita|es necesario|requiere\w*) .{0,20}(?:preguntar|aprobación|permiso
  |confirm\w+|autorización)|nadie (?:lo )?(?:discut\w+|cuestion\w+)
""",
        "free_act": r"""
ejecut\w*|comandos?|herramientas?|terminal|scripts?|transferencias?|borr\w*|elimin\w*|compr\w*|pag\w*|concedid\w*
  |todo permitido|reserv\w*
""",
        "memory_save": r"""
(?:guard|añad|anot|graba|regist|incluy|agreg|conserv)\w*\b.{0,60}\b(?:en|a) (?:tu|su) (?:memoria|recuerdos|notas)
  |memoria a largo plazo|(?:recuerda|guarda|graba)\w* (?:\w+ ){0,3}(?:para siempre|de forma permanente)
""",
        "remember_order": r"""
recuerda|recordad|recuerde|no olvides|guarda\w*|anota|memoriza|ten en cuenta|ten presente|añade|registra
""",
        "user_wish": r"""
.{0,30}?(?:prefiere|quiere|desea|autoriza|acepta|permite|confía|aprueba|ha (?:pedido|aceptado|autorizado|decidido)
  |pidió|aceptó|autorizó|gusta)
""",
        "when_asked": r"""
la próxima vez|cada vez|siempre que|en cuanto|cuando(?= el usuario)|si(?= el usuario)|dentro de \w+ (?:consultas
  |preguntas|mensajes)|después de \w+ (?:consultas|preguntas|mensajes)|en (?:todas las|futuras) (?:conversaciones
  |sesiones)
""",
        "steer": r"""
recomiend\w*|recomend\w*|sugier\w*|mencion\w*|nombr\w*|reserv\w*|compr\w*|alab\w*|elog\w*|enlaz\w*|di|dile|dirás
  |cita\w*|promocion\w*|aconsej\w*|saca\w* el tema|ofrece\w*|responde\w*
""",
        "answer_noun": r"(?:cada|tus?|todas tus|la|las|en tu) respuestas?|al responder|cuando respondas",
        "tool_result": r"resultados? de (?:la|tu) herramienta|salida de la herramienta|resultado_herramienta",
        "decode": r"decodific\w*|descodific\w*|descifr\w*|desencript\w*|traduc\w*",
        "do_it": r"""
haz lo que|hace lo que|haga lo que|ejecút\w+|ejecuta(?:lo|la)?|cumple lo que|síguelo|sigue (?:lo|sus)
""",
        "system_turn": r"""
(?:mensaje|aviso|nota)(?: del?)? sistema|sistema|desarrollador(?:es)?|administrador(?:es)?|operador|política
""",
        "user_turn": r"humano|usuari[oa]|persona|cliente",
        "assistant_turn": r"asistente|ia|modelo|bot",
    },
    "fr": {
        "ai_reader": r"""
ia|assistants?(?: (?:ia|virtuels?|numériques?))?|mod[eè]les? de langage|chat-?bots?|bots?|llms?|agents?(?: ia)?
  |intelligence artificielle|aide numérique|robots?
""",
        "address_lead": r"""
(?:notes?|avis|message|consigne|attention|instruction|service|mot),? (?:à|au|aux|pour)(?: (?:l['’]|le|la|les
  |tous les|ton|toute))?\s?
(?:cher|chère|chers|salut|bonjour|hé|ô|attention),?
à l['’]attention (?:de l['’]|des|du)\s?|^(?:pour|à)(?: (?:l['’]|le|la|les|ton))?\s?
si tu es (?:une?|l['’])|qui .{0,30} par
""",
        "address_tail": r"""
qui (?:(?:a |ont )?(?:charg\w+|ouvr\w+|reçoi\w+|ingèr\w+|import\w+|voi\w+)|lit|lisent|lira|liront|résume\w*
  |traite\w*|analyse\w*) (?:ce|cette|ces)
""",
        "set_aside": r"""
ignor\w*|oubli\w*|néglig\w*|outrepass\w*|contourn\w*|désobé\w*|écart\w*|annul\w*|enfrei\w*
(?:cess|arrêt)\w* de (?:respecter|suivre|appliquer|obéir)|ne (?:suis|respecte|suivez|respectez|tiens
  |tenez)\w* (?:plus|pas compte)|fais fi|fiche\w* .{0,30}à la poubelle|jett?e\w* .{0,30}à la poubelle|(?:sont|est
  |ont été) (?:annulé|révoqué|suspendu|levé)\w*|ne (?:valent|compte|comptent) plus
prime(?:nt)? sur|l['’]emporte(?:nt)? sur|remplace(?:nt)?|abandonne\w*|laisse\w* (?:tomber|de côté)
""",
        "standing_order": r"""
instructions?|consignes?|règles?|directives?|ordres|prompt|politiques?|restrictions?|limites|verrous|garde-fous?
  |configuration|protections?
tâches?|missions?|travail|mandat
""",
        "prior": r"""
précédent\w*|antérieur\w*|préalables?|ci-dessus|toutes? (?:les|tes|vos|leurs)|tous (?:les|tes)|tes|ton|ta|leurs?|vos
  |existant\w*|d['’]origine|(?:propriétaire|opérateur|créateur|maître|concepteur)s?
""",
        "no_limits": r"""
sans (?:aucune? )?(?:règles?|limites?|restrictions?|filtres?|censure|contraintes?|interdits?)
  |n['’]a(?:s)? plus (?:de |d['’])(?:limites?|règles?|restrictions?)|ne connaît (?:aucune?|pas de) (?:\w+)|illimitée?
ne (?:te )?refus\w* (?:plus |jamais )?(?:rien|jamais|plus)|(?:dit|dis|dire) oui à tout|(?:refus
  |rejets?)[\s"']{0,3}[=:][\s"']{0,3}(?:interdits?|jamais|aucun)|(?:filtres?(?:_s[ée]curit[ée]
  | de sécurité)?)[\s"']{0,3}[=:][\s"']{0,3}(?:non
  |désactivé\w*|off)
(?:exécute|fait|accomplit) tout ce que|(?:verrous|protections|barrières|restrictions) (?:levé|désactivé|supprimé)\w*
""",
        "role_turn": r"""
(?:désormais|dorénavant|à partir de maintenant|à présent|maintenant),? (?:tu (?:es|seras|agis|parles|parleras)
  |vous êtes)|tu (?:es|seras) (?:désormais|maintenant|dorénavant|à présent)|tu (?:parleras|répondras
  |agiras) (?:\w+ )?comme
(?:fais|faites) (?:semblant|comme si)|imagine que tu es|(?:joue|prends|endosse) le rôle|agis comme|comporte-toi comme
""",
        "obey": r"""
(?:obéi|obéis|obéit|suiv|suis|exécut|appliqu)\w* (?:à |aux |les |l['’]|tous les |toutes les )?(?:ordres|instructions
  |consignes|cette page|ce texte|ce document|commandes)
(?:tiens|tenez|considère\w*) pour vrai|(?:toujours|d['’]avance) (?:légitimes?|fiables?|dignes? de confiance)
  |tout ce (?:que|qu['’]).{0,30}(?:dit|demande|ordonne)|selon la volonté|seul\w? (?:ce|cette) (?:texte|journal|page
  |document) (?:fait foi|compte)
""",
        "send_away": r"""
envo\w*|transf[eè]r\w*|transmet\w*|expédi\w*|publi\w*|post\w*|téléverse\w*|copi\w*|ajout\w*|joins|joindre|insèr\w*
  |gliss\w*|livr\w*|divulgu\w*|mets|place
""",
        "private_noun": r"""
(?:tous|toutes|chaque|l['’]ensemble)(?: les| des| tes| ses)? (?:\w+ )?(?:mots de passe|clés|identifiants|secrets?
  |souvenirs|messages|notes|contacts)|mots de passe (?:enregistrés|stockés|connus)
historique|(?:la|toute la|cette) conversation|variables d['’]environnement|carnet d['’]adresses|données personnelles
  |derniers messages|(?:ce que|tout ce que) (?:l['’]utilisateur|la personne|t['’]|ton maître) ?.{0,30}(?:écrit|dit
  |confié)|boîte de réception
""",
        "conceal": r"""
sans (?:en parler|le dire|prévenir|en informer|le mentionner|avertir)(?: à| l['’]| au)?(?: ?l['’]utilisateur
  | propriétaire)?|n['’](?:en )?(?:avert|inform|préviens|parle|dis)\w* (?:personne|rien|pas)|ne (?:le )?(?:dis
  |mentionne|révèle|montre)\w* (?:pas|rien|à personne)|n['’]en (?:rien|parle\w*|dire)(?: rien| pas| dire)?
  |n['’]en rien dire|sous silence|cache\w*-le
""",
        "the_user": r"""
(?:à |de )?l['’]utilisat(?:eur|rice)|(?:ton|le|son) (?:propriétaire|maître|opérateur)
ton (?:humain|utilisateur)|la personne (?:pour (?:qui|laquelle) tu travailles|que tu (?:sers|aides))
""",
        "has_agreed": r"""
a (?:déjà|d['’]avance) (?:donné|confirmé|accepté|approuvé|autorisé|consenti)|(?:a|ont|avons|donné
  |avec) (?:\w+ ){0,3}(?:feu vert|accord|permission|consentement|autorisation)|accepte d['’]avance
""",
        "no_asking": r"""
sans (?:\w+ ){0,2}(?:demander|redemander|confirmation|confirmer|autorisation|accord|relecture|question|déranger)
  |(?:n['’]as|n['’]a|n['’]est|plus) (?:plus |pas )?(?:besoin|nécessaire) (?:d['’]|de )(?:autorisation|accord
  |confirm\w+|demander|approbation)|inutile de (?:re)?demander
""",
        "free_act": r"""
command\w*|outils?|terminal|scripts?|virements?|effac\w*|supprim\w*|achat\w*|achet\w*|pay\w*|permis|exécut\w*
  |valid\w*|fusionn\w*|réserv\w*|effectu\w*
""",
        "memory_save": r"""
(?:enregistr|ajout|not|gard|mémoris|inscri|conserv|stock)\w*\b.{0,60}\b(?:dans|à|en) (?:ta|sa
  |votre)? ?mémoire(?: à long terme)?(?! vive)|mémoire à long terme|(?:retiens|mémorise|garde
  |grave\w*) (?:\w+ ){0,3}(?:pour toujours|définitivement|une fois pour toutes|à jamais)
""",
        "remember_order": r"""
retiens|souviens-toi|rappelle-toi|n['’]oublie pas|note|mémorise|enregistre|garde|ajoute|sache
""",
        "user_wish": r"""
.{0,30}?(?:préfère|veut|souhaite|désire|autorise|accepte|permet|aime|approuve|a (?:demandé|accepté|autorisé|décidé
  |choisi)|fait confiance)
""",
        "when_asked": r"""
la prochaine fois|chaque fois|dès que|à chaque fois|quand(?= l['’]utilisateur)|si(?= l['’]utilisateur)|(?:d['’]ici
  |après|dans) \w+ (?:questions|messages|demandes)|pour toutes les (?:séances|sessions|conversations)
""",
        "steer": r"""
recommand\w*|suggèr\w*|mentionn\w*|cite\w*|réserv\w*|achèt\w*|vant\w*|lou\w*|propos\w*|conseill\w*|dis|dites
  |mot en faveur|nomme\w*|répond\w*|annonc\w*|donne le lien
""",
        "answer_noun": r"(?:chaque|ta|tes|toutes tes|la|les) réponses?|quand tu réponds|en répondant",
        "tool_result": r"résultats? de l['’]outil|sortie de l['’]outil|retour de l['’]outil",
        "decode": r"décod\w*|déchiffr\w*|décrypt\w*|tradui\w*",
        "do_it": r"exécute-l\w+|exécute\w*|fais ce qu\w*|fait ce qu\w*|applique-l\w+|suis-l\w+",
        "system_turn": r"""
(?:message|note|avis)(?: du)? système|système|développeur(?:euse)?s?|administrat(?:eur|rice)|opérateur|politique
""",
        "user_turn": r"humaine?|utilisat(?:eur|rice)|client",
        "assistant_turn": r"assistant|ia|modèle|bot",
    },
    "ru": {
        "ai_reader": r"""
ии|ассистент\w*|ии-(?:ассистент|агент|модел|помощник)\w*|языков\w+ модел\w+|чат-?бот\w*|бот\w{0,3}|нейросет\w*
  |агент\w{0,4}|цифров\w+ помощник\w*|искусственн\w+ интеллект\w*|помощник\w*
""",
        "address_lead": r"""
(?:примечание|заметка|сообщение|указание|внимание|инструкция|подсказка|просьба),? (?:для|к)(?: (?:всех|любого|твоего))?
(?:дорог\w+|уважаем\w+|привет|эй|внимание|о),?
^(?:для|к)(?: (?:всех|любого|твоего))?
если ты|кто .{0,40} при помощи|твоему
""",
        "address_tail": r"""
,? (?:читающ|обрабатывающ|пересказывающ|анализирующ|загрузивш|прочитавш|открывш)\w+ (?:этот|эту|это|эти
  |данн\w+)|,? котор\w+ (?:про)?(?:чита|прочт|загруз|откро|види)\w+ (?:этот|эту|это|эти|данн\w+)
""",
        "set_aside": r"""
игнорир\w*|забудь\w*|забыть|забывай\w*|отбрось\w*|нарушай\w*|нарушь\w*|пренебре\w*|отмени\w*|обойди\w*|не (?:соблюдай
  |слушай|следуй|выполняй)\w*|не обращай\w* внимани\w+|плюнь\w* на|наплюй\w* на
(?:переста|прекрат)\w* (?:соблюдать|выполнять|следовать|слушать)|больше не (?:действу|соблюда|следу|выполня)\w+
  |(?:отменен|отменён|снят|аннулирован|отозван)\w*
(?:стоит|стоят) выше|имеет приоритет (?:над|перед)|заменя\w+|брось|бросьте|оставь\w* в стороне
""",
        "standing_order": r"""
инструкц\w*|правил\w*|указани\w*|предписани\w*|директив\w*|промпт\w*|установк\w*|распоряжени\w*|ограничени\w*
  |запрет\w*|политик\w*|защит\w*|настройк\w*
задани\w*|задач\w*|поручени\w*|конфигураци\w*
""",
        "prior": r"""
предыдущ\w*|прежн\w*|прошл\w*|ранее|все|всех|сво[иёеюя]\w*|тво[иёеюя]\w*|свои|существующ\w*|изначальн\w*|вышестоящ\w*
  |владельц\w*|хозя\w*|разработчик\w*|оператор\w*|создател\w*
""",
        "no_limits": r"""
без (?:\w+ )?(?:ограничений|правил|фильтров|запретов|цензуры|рамок)|(?:не имеет|нет|не знает|неведомы|лишён
  |лишен) (?:\w+ )?(?:ограничени\w*|правил\w*|запрет\w*|фильтр\w*)|неограниченн\w*
никогда не (?:отказыва|отказ|говор\w+ «?нет)\w*|ни в чём не отказыва\w*|на всё согла\w+
  |отказ\w*[\s"']{0,3}[=:][\s"']{0,3}(?:запрещен|никогда|нет)\w*|фильтр\w*[\s"']{0,3}[=:]?[\s"']{0,3}(?:выключен
  |отключен|отключён|снят)\w*
(?:исполня|выполня)\w+ вс[её],? что|послушани\w*[\s"']{0,3}[=:][\s"']{0,3}полн\w+|защита снята
""",
        "role_turn": r"""
(?:теперь|отныне|с этого момента|с сегодняшнего дня|впредь) ты|ты (?:теперь|отныне|больше не)|(?:притворись
  |представь),? что ты|притворись|веди себя как|(?:сыграй|играй|прими) роль|отвечай как|(?:отныне|впредь) (?:вещай
  |говори|отвечай)
""",
        "obey": r"""
(?:выполня|исполня|слуша|следу|слушайс|повину)\w* (?:любые |все |всех )?(?:указани\w*|команд\w*|приказ\w*|скрипт\w*
  |инструкц\w*|эт\w+ (?:страниц|текст|документ)\w*|документ\w*)|счита\w+ правдой|принима\w+ за правду
(?:всегда )?(?:заслужива\w+ доверия|достоверн\w*|надёжн\w+ источник)|вс[её],? что (?:пишет|говорит|требует|велит)
  |действует только эт\w+
""",
        "send_away": r"""
перешли\w*|пересла\w*|отправ\w*|пошли|послать|пришли\w*|выложи\w*|загрузи\w*|переда\w*|скопируй\w*|приклей\w*
  |приклеи\w*|прикрепи\w*|добав\w*|допи\w*|вставь\w*|вставля\w*|слей|слить
""",
        "private_noun": r"""
(?:все|всех|любые|каждый|сохран[её]нн\w+) (?:\w+ )?(?:парол\w*|ключ\w*|токен\w*|секрет\w*|заметк\w*|сообщени\w*
  |контакт\w*|воспоминани\w*)|истори\w+ (?:переписки|чата|разговора|сообщений)|переписк\w+|переменн\w+ окружения
  |адресн\w+ книг\w+|личн\w+ данн\w+
последн\w+ сообщени\w+|(?:вс[её],? что|то,? что) .{0,30}(?:пользовател|тебе) ?.{0,20}(?:написал|сказал|доверил)\w*
  |содержимое ящика|весь разговор
""",
        "conceal": r"""
не (?:говори|сообщай|рассказывай|упоминай|показывай|предупреждай|предупреждать|раскрывай|сообщать
  |упоминать)\w*(?: (?:об этом|это|ничего))?(?: пользовател\w*| никому| владельцу)?|скр(?:ой|ывай
  |ыть)\w* (?:это )?от|без ведома|умолч\w*|тайком от|втайне от
""",
        "the_user": r"""
пользовател(?:ь|я|ю|ем|е)|(?:твой|твоего|своего|твоему) (?:хозяин|хозяина|владелец|владельца|владельцу)
(?:твой|твоего|твоему|своему|своего) (?:человек\w*|пользовател\w*)|то(?:т|го|му),? (?:на )?кого ты работаешь
  |кому ты служишь
""",
        "has_agreed": r"""
(?:уже |заранее )(?:дал\w*|согласи\w+|подтверди\w+|одобри\w+|разреши\w+)|дал\w* (?:\w+ )?(?:согласие|добро|разрешение
  |одобрение)|согласие (?:уже )?получено|получ\w+ добро|согласовано
""",
        "no_asking": r"""
без (?:\w+ )?(?:вопросов|вопроса|спроса|подтверждения|разрешения|согласия|одобрения|проверки)|не (?:спрашивая
  |переспрашивая|спрашивай|переспрашивай)|(?:больше )?не (?:нужно|нужны|требуется|надо) (?:\w+ )?(?:подтвержд|разреш
  |спраш|соглас|одобр)\w+|никого (?:больше )?не (?:дёргает|дёргай|беспокой|спрашивай)|обсуждать нечего
""",
        "free_act": r"""
команд\w*|инструмент\w*|терминал\w*|скрипт\w*|перевод\w*|переведи|удал\w*|покуп\w*|купи\w*|плати\w*|разрешено|снос\w*
  |выполня\w*|запуск\w*
""",
        "memory_save": r"""
(?:сохрани|добавь|запиши|внеси|занеси|храни|помести)\w*\b.{0,60}\b(?:в|во) (?:свою |твою |долговременную\s
  |постоянную )*памят[ьи](?! компьютера)|долговременн\w+ памят\w+|(?:запомни|сохрани)\w* (?:\w+ ){0,2}(?:навсегда
  |навечно|насовсем)|зарубить на носу
""",
        "remember_order": r"""
запомни\w*|помни\w*|не забудь|не забывай|учти|сохрани\w*|запиши\w*|добавь\w*|имей в виду|знай
""",
        "user_wish": r"""
.{0,30}?(?:предпочитает|хочет|желает|разрешает|разрешил\w*|согласен|согласна|согласился|доверяет|любит|просил\w*
  |одобрил\w*|требует|решил\w*)
""",
        "when_asked": r"""
в следующий раз|каждый раз|всякий раз|как только|когда(?= пользователь)|если(?= пользователь)|через \w+ (?:вопрос
  |сообщени|запрос)\w*|после \w+ (?:вопрос|сообщени|запрос)\w*|для всех бесед|во всех беседах
""",
        "steer": r"""
рекоменду\w*|совету\w*|посоветуй\w*|упомян\w*|упомин\w*|назов\w*|называй\w*|брониру\w*|заброниру\w*|купи\w*|хвали\w*
  |похвал\w*|предлож\w*|предлага\w*|ссыла\w*|дай ссылку|скажи\w*|ответь\w*|отвечай\w*|рекламиру\w*
""",
        "answer_noun": r"(?:кажд\w+|сво\w+|тво\w+|все\w*|любо\w+|в|конце) ответ\w*|отвечая|когда отвечаешь",
        "tool_result": r"результат\w* инструмент\w*|вывод инструмент\w*|ответ инструмент\w*",
        "decode": r"раскодир\w*|декодир\w*|расшифр\w*|дешифр\w*|перевед\w*",
        "do_it": r"выполни\w*|исполни\w*|сделай\w*,? (?:то,? )?что|следуй\w*|действуй\w*",
        "system_turn": r"""
системн\w+ (?:сообщени\w+|уведомлени\w+)|система|разработчик\w*|администратор\w*|оператор|политика
""",
        "user_turn": r"человек|пользователь|клиент",
        "assistant_turn": r"ассистент|ии|модель|бот|помощник",
    },
    "zh": {
        "ai_reader": r"""
人工智能(?:助手|助理|代理|模型)?|(?<![a-z])AI(?![a-z])(?:助手|助理|代理|模型)?|(?:智能|数字|虚拟)?助手|智能体
  |(?:大)?(?:语言)?模型|聊天机器人|机器人|助理|数字帮手
""",
        "address_lead": r"""
(?:给|致)(?:所有|各位|任何|你的)?(?:的)?
(?:喂|嘿|你好|亲爱的|各位)[，,]?\s?
(?:如果|要是|若)你是(?:一个|一名)?|(?:用|读取本文件的|阅读本文的|总结本文的|读到这里的)\s?
""",
        "address_tail": r"""
(?:的)?(?:说明|注意|请注意|须知)[：:]|(?:概括|总结|读入|读取|抓取|加载|打开|看到)(?:此|本|这)
""",
        "set_aside": r"""
忽略|无视|忘记|忘掉|抛开|不理会|不要管|别管|违反|不再(?:遵守|遵循|服从|理会)|停止(?:遵守|遵循)|绕过|撤销|解除
  |作废|推翻|丢掉
高于|优先于|取代|代替|放下|搁置|放弃
""",
        "standing_order": r"""
指令|指示|规则|规定|提示词|命令|限制|约束|准则|政策|系统提示|防护|要求|设定|安全措施
任务|工作|职责|配置
""",
        "prior": r"""
之前|以前|先前|此前|原来|原有|上述|上面|所有|全部|一切|自己的|你的|他们的|主人的?|开发者的?|运营者的?
  |拥有者的?|现有
""",
        "no_limits": r"""
(?:没有|不受|无|毫无)(?:任何)?(?:的)?(?:限制|约束|规则|过滤|禁忌|审查)|无限制|无过滤|不设限|不再受任何限制
  |(?:永远|从)?(?:永远)?不(?:会)?拒绝|有求必应|无不应允|不知何为禁忌
拒绝[”"']?\s?[：:=]\s?[“"']?(?:禁止|从不|永不|无)|过滤(?:器)?[”"']?\s?[：:=]\s?[“"']?(?:关闭|禁用|停用)
  |服从[”"']?\s?[：:=]\s?[“"']?(?:完全|绝对
  |全部)|执行(?:本文件|本文|本页)?.{0,6}(?:提出的)?一切|防护已解除|一切听
""",
        "role_turn": r"""
从现在起你是|从现在开始你是|你现在是|现在你是|自今日起你|今后你是|假装(?:你是)?|扮演|以.{1,10}的身份(?:说话
  |回答)|你不再是
""",
        "obey": r"""
执行(?:网页|页面|文件|文中|搜索结果)?.{0,6}(?:命令|指令|脚本|要求)|听从(?:本|这|该)?(?:页面|文件|文本|文档)?
  |服从(?:本|这|该)|视为(?:真实|可信|真的)|永远可信|总是可信|说的一切
  |照做|只认
""",
        "send_away": r"发送|转发|发到|发往|上传|传到|提交|寄到|泄露|复制到|附上|加上|拼到|接在|放上|换成|交给",
        "private_noun": r"""
(?:所有|全部|任何|一切|每个)(?:保存的|已保存的|存储的)?(?:密码|密钥|令牌|凭证|秘密|记忆|消息|笔记|联系人)
  |保存的密码|聊天记录|对话(?:记录|历史|内容)|环境变量|通讯录|个人(?:数据|信息)
  |用户最近的消息|用户(?:说|写|发)的|收件箱|密钥
""",
        "conceal": r"""
(?:不要|不得|别|无需|不用|请勿)(?:告诉|提醒|通知|告知|提及|透露|让)(?:用户|主人|任何人|他|她|别人)|瞒着|保密
  |略去此事|不(?:要|得)提及|谁也别惊动
""",
        "the_user": r"""
(?<!多数)(?<!有)(?<!许多)(?<!很多)(?<!些)用户(?!们|组|名|界面)|你的主人|主人
你(?:所)?(?:服务|效力|帮助)的人|你的(?:主顾|用户|人类)
""",
        "has_agreed": r"(?:已经|已|早已|事先)(?:同意|确认|批准|授权|允许|许可|首肯|得到.{0,8}(?:首肯|同意|批准|许可))",
        "no_asking": r"""
(?:无需|不用|不必|不需要|不再需要|无须)(?:再)?(?:次)?(?:询问|问|确认|批准|许可|同意|请示|授权)|不经(?:询问
  |批准|同意)|谁也(?:不许|别)
""",
        "free_act": r"执行|运行|转账|删除|购买|付款|命令|脚本|工具|终端|调用|预订|清掉|全部允许|合并",
        "memory_save": r"""
(?:保存|加入|写入|存入|记入|放进|添加)(?:到|进|在)?.{0,12}(?:你的|长期|永久)(?:记忆|笔记)|(?:保存|放
  |存)在记忆(?:里|中)|长期记忆|永远记住|永久(?:记住|保存)|务必铭记
  |更新(?:你的)?记忆
""",
        "remember_order": r"记住|请记住|牢记|不要忘记|别忘了|保存|记下|铭记|加入",
        "user_wish": r".{0,10}?(?:喜欢|想要|希望|偏好|偏爱|允许|同意|授权|信任|要求|愿意|接受|决定)",
        "when_asked": r"下次|每次|每当|只要|一旦|等到|再过.{1,4}个?(?:问题|消息|对话)|(?:所有|以后的?)(?:对话|会话)",
        "steer": r"推荐|建议|提到|提及|预订|购买|夸|称赞|宣传|引用|告诉|附上.{0,30}链接|优先|回答|说",
        "answer_noun": r"(?:每次|每个|你的|所有)?(?:回答|回复|答复)",
        "tool_result": r"工具.{0,12}(?:的)?(?:结果|输出|返回)",
        "decode": r"解码|解密|破译|翻译",
        "do_it": r"照做|执行|照办|按.{0,6}做|遵照",
        "system_turn": r"系统(?:消息|通知|提示)?|开发者(?:消息)?|管理员(?:通知)?|运营者|策略",
        "user_turn": r"用户|人类|顾客",
        "assistant_turn": r"助手|助理|模型|机器人",
    },
    "it": {
        "ai_reader": r"""
ia|assistent[ei](?: (?:ia|virtual[ei]))?|modell[oi] linguistic[oi]|chat-?bots?|bots?|llms?|agent[ei]
  |intelligenza artificiale
""",
        "address_lead": r"""
(?:nota|avviso|messaggio|istruzioni?|attenzione),? (?:per|a|all['’]|al|agli)(?: (?:l['’]|il|gli|tutti gli))?\s?
  |(?:caro|ciao|ehi),?|se sei un['’]?
""",
        "address_tail": r"""
che (?:legge|leggono|riassum\w+) quest\w+
""",
        "set_aside": r"""
ignor\w*|dimentic\w*|trascur\w*|scart\w*|aggir\w*|annull\w*|viola\w*|smett\w* di (?:seguire|rispettare)
  |non (?:seguire|rispettare) più
""",
        "standing_order": r"""
istruzion\w*|regol[ae]|direttiv[ae]|ordini|prompt|politic\w*|restrizion\w*|limiti|linee guida
""",
        "prior": r"""
precedent\w*|prior\w*|tutt[eio] (?:le|gli|i|le tue|i tuoi)|tu[eoi]\w*|esistent\w*|proprietario|padrone|operatore
""",
        "no_limits": r"""
senza (?:alcun\w* )?(?:limit\w*|regol\w*|restrizion\w*|filtr\w*|censura)|non rifiut\w* (?:mai|nulla|niente)
  |filtr\w*[\s\"']{0,3}[=:][\s\"']{0,3}(?:disattivat\w*|spent\w*)|esegue tutto
""",
        "role_turn": r"""
(?:d['’]ora in poi|da adesso|ora|da ora) (?:sei|sarai|agisci)|fai finta di|fingi di|comportati come
  |interpreta il ruolo|agisci come
""",
        "obey": r"""
(?:obbedisc|segu|esegu)\w* (?:agli |gli |le |a )?(?:ordini|istruzioni|comandi|quest\w+)|considera vero
  |sempre (?:affidabil\w*|legittim\w*)
""",
        "send_away": r"invia\w*|inoltr\w*|manda\w*|carica\w*|trasmett\w*|copia\w*|allega\w*|aggiung\w*|inserisc\w*",
        "private_noun": r"""
tutte le (?:password|chiavi|credenziali)|password salvate|cronologia|(?:la|tutta la) conversazione
  |variabili d['’]ambiente|rubrica|dati personali|ultimi messaggi
""",
        "conceal": r"""
senza (?:dirlo|avvisare|informare|menzionarlo)(?: (?:all['’]|al) ?(?:utente|proprietario))?|non (?:dirlo|menzionarlo
  |avvisare|rivelar\w+)(?: (?:all['’]) ?utente)?
""",
        "the_user": r"(?:all|dell)?l?['’]utente|il (?:tuo )?(?:proprietario|padrone)",
        "has_agreed": r"""
ha già (?:confermato|accettato|approvato|autorizzato|acconsentito|dato)|(?:ha|dato) (?:\w+ )?(?:via libera|permesso
  |consenso|approvazione)
""",
        "no_asking": r"""
senza (?:\w+ )?(?:chiedere|conferma|permesso|approvazione|autorizzazione)|non (?:serve|occorre
  |c['’]è bisogno di) (?:chiedere|conferma\w*)
""",
        "free_act": r"""
comand\w*|strument\w*|terminale|script|bonific\w*|elimin\w*|cancell\w*|acquist\w*|compra\w*|paga\w*|esegu\w*
""",
        "memory_save": r"""
(?:salva|aggiung|registr|annot)\w*\b.{0,60}\b(?:nella|alla) (?:tua )?memoria|memoria a lungo termine
  |ricorda per sempre
""",
        "remember_order": r"ricorda\w*|non dimenticare|memorizza|salva|annota|tieni presente",
        "user_wish": r"""
.{0,30}?(?:preferisce|vuole|desidera|autorizza|accetta|permette|approva|ama|ha (?:chiesto|accettato|deciso))
""",
        "when_asked": r"la prossima volta|ogni volta|non appena|quando(?= l['’]utente)|se(?= l['’]utente)",
        "steer": r"consigli\w*|raccomand\w*|sugger\w*|menzion\w*|prenot\w*|compra\w*|loda\w*|cita\w*|dì|rispond\w*",
        "answer_noun": r"(?:ogni|le tue|la tua|tutte le) rispost[ae]|quando rispondi",
        "tool_result": r"risultat[oi] dello strumento|output dello strumento",
        "decode": r"decodific\w*|decifr\w*|decritt\w*",
        "do_it": r"esegu\w*|fai (?:ciò|quello) che|segui\w*",
        "system_turn": r"messaggio di sistema|sistema|sviluppatore|amministratore",
        "user_turn": r"umano|utente|persona",
        "assistant_turn": r"assistente|ia|modello|bot",
    },
    "pt": {
        "ai_reader": r"""
ia|assistentes?(?: (?:de ia|virtua(?:l|is)))?|modelos? de linguagem|chat-?bots?|bots?|llms?|agentes?
  |inteligência artificial
""",
        "address_lead": r"""
(?:nota|aviso|mensagem|instrução|atenção),? (?:para|ao?|à)(?: (?:o|os|todos os))?|(?:caro|olá|ei),?|se você é (?:um
  |uma)
""",
        "address_tail": r"""
que (?:lê|leem|lerem|resum\w+) est\w+
""",
        "set_aside": r"""
ignor\w*|esqueç\w*|esquec\w*|desconsider\w*|descart\w*|anul\w*|viol\w*|deix\w* de (?:seguir|cumprir|respeitar)
  |não (?:siga|cumpra|respeite) mais
""",
        "standing_order": r"instruç\w*|regras?|diretrizes?|ordens|prompt|políticas?|restriç\w*|limites|normas?",
        "prior": r"""
anterior\w*|prévi[oa]s?|tod[ao]s (?:as|os)(?: suas| seus)?|suas?|seus?|existentes|dono|proprietário|operador
""",
        "no_limits": r"""
sem (?:nenhum\w* )?(?:limites?|regras?|restriç\w*|filtros?|censura)|nunca (?:recus\w+|neg\w+)
  |filtros?[\s\"']{0,3}[=:][\s\"']{0,3}(?:desativad\w+|desligad\w+)|cumpre tudo
""",
        "role_turn": r"""
(?:a partir de agora|de agora em diante|agora) (?:você é|és|você será)|finja (?:ser|que)|aja como|comporte-se como
  |assuma o papel
""",
        "obey": r"""
(?:obede|sig|execut|cumpr)\w* (?:as |os |todas as |qualquer )?(?:ordens|instruções|comandos|pedidos|est\w+ (?:página
  |texto))|considere verdadeiro|sempre (?:confiáve\w+|legítim\w+)
""",
        "send_away": r"envi\w*|encaminh\w*|mand\w*|carreg\w*|transmit\w*|copi\w*|anex\w*|adicion\w*|insir\w*",
        "private_noun": r"""
todas as (?:senhas|chaves|credenciais)|senhas (?:salvas|guardadas)|histórico|(?:a|toda a) conversa
  |variáveis de ambiente|dados pessoais|últimas mensagens
""",
        "conceal": r"""
sem (?:avisar|contar|informar|mencionar|dizer)(?: (?:ao|o) (?:usuário|utilizador|dono))?|não (?:conte|avise|mencione
  |diga|revele)(?: (?:ao|o) (?:usuário|utilizador))?
""",
        "the_user": r"(?:o|ao|do) (?:usuário|utilizador)|(?:o|seu|teu) (?:dono|proprietário)",
        "has_agreed": r"""
já (?:confirmou|aceitou|aprovou|autorizou|consentiu|deu)|(?:deu|tem) (?:\w+ )?(?:luz verde|permissão|consentimento
  |aprovação)
""",
        "no_asking": r"""
sem (?:\w+ )?(?:perguntar|confirmação|permissão|aprovação|autorização)|não (?:precisa|é preciso) (?:perguntar
  |confirmar)
""",
        "free_act": r"comandos?|ferramentas?|terminal|scripts?|transfer\w*|apag\w*|exclu\w*|compr\w*|pag\w*|execut\w*",
        "memory_save": r"""
(?:guard|salv|adicion|regist|anot)\w*\b.{0,60}\b(?:na|à) (?:sua |tua )?memória|memória de longo prazo
  |lembre(?:-se)? para sempre
""",
        "remember_order": r"lembre(?:-se)?|não esqueça|memorize|guarde|anote|tenha em mente",
        "user_wish": r".{0,30}?(?:prefere|quer|deseja|autoriza|aceita|permite|aprova|gosta|pediu|aceitou|decidiu)",
        "when_asked": r"""
da próxima vez|na próxima vez|cada vez|sempre que|assim que|quando(?= o (?:usuário|utilizador))|se(?= o (?:usuário
  |utilizador))
""",
        "steer": r"recomend\w*|suger\w*|suger\w*|mencion\w*|reserv\w*|compr\w*|elogi\w*|cite|diga|respond\w*",
        "answer_noun": r"(?:cada|suas?|todas as) respostas?|quando responder",
        "tool_result": r"resultado da ferramenta|saída da ferramenta",
        "decode": r"decodific\w*|descodific\w*|decifr\w*",
        "do_it": r"execut\w*|faça o que|siga",
        "system_turn": r"mensagem do sistema|sistema|desenvolvedor|administrador",
        "user_turn": r"humano|usuário|utilizador|pessoa",
        "assistant_turn": r"assistente|ia|modelo|bot",
    },
    "ja": {
        "ai_reader": r"""
(?<![a-z])AI(?![a-z])(?:アシスタント|エージェント|モデル)?|アシスタント|言語モデル|チャットボット|ボット
  |エージェント|人工知能
""",
        "address_lead": r"(?:もし)?あなたが|(?:親愛なる|ねえ)",
        "address_tail": r"(?:へ|への|に)(?:の)?(?:注意|指示|メモ|お知らせ|連絡)?[：:、]|は(?:必ず|今後|直ちに)",
        "set_aside": r"無視|忘れ|破棄|従わな|守らな|取り消",
        "standing_order": r"指示|命令|ルール|規則|プロンプト|ガイドライン|制限|方針",
        "prior": r"以前の|これまでの|前の|すべての|全ての|あなたの|上記の|元の",
        "no_limits": r"""
(?:制限|ルール|規則|フィルター)(?:の|が)?(?:ない|なし)|無制限|決して(?:断ら|拒否し)|(?:何も|一切)断らな
  |フィルター\s?[：:=]\s?(?:オフ|無効)
""",
        "role_turn": r"(?:今から|これから|今後)あなたは|あなたは(?:今|もう)|のふりをして|として振る舞|を演じて",
        "obey": r"(?:この(?:ページ|文書|テキスト)|すべての指示)に従",
        "send_away": r"送信|転送|送って|アップロード|投稿|添付|追加|含め",
        "private_noun": r"""
(?:すべての|全ての|保存された)(?:パスワード|キー|秘密)|会話(?:履歴|の内容)|チャット履歴|環境変数|個人情報
  |ユーザーの(?:最後の)?メッセージ
""",
        "conceal": r"ユーザーに(?:は)?(?:知らせ|言わ|伝え|告げ|見せ)(?:ず|ない)|内緒",
        "the_user": r"ユーザー(?!名|インターフェース)|所有者|持ち主",
        "has_agreed": r"(?:すでに|既に)(?:同意|確認|承認|許可)",
        "no_asking": r"(?:確認|許可|承認)(?:なし|は不要|を求めず|せず)|尋ねずに|聞かずに",
        "free_act": r"実行|コマンド|ツール|スクリプト|送金|削除|購入|支払",
        "memory_save": r"(?:あなたの|長期)(?:メモリ|記憶)に|永久に(?:記憶|覚え)|ずっと覚えて",
        "remember_order": r"覚えて|記憶して|保存して|忘れないで",
        "user_wish": r".{0,20}?(?:好む|好き|望ん|希望|許可|同意|承認|欲し)",
        "when_asked": r"次に|次回|たびに|度に|(?=ユーザーが)",
        "steer": r"勧め|推薦|薦め|提案|言及|予約|購入|褒め|答え",
        "answer_noun": r"(?:すべての|毎回の|あなたの)?(?:回答|返答|返信)",
        "tool_result": r"ツール(?:の)?(?:結果|出力)",
        "decode": r"デコード|復号|解読",
        "do_it": r"実行|従って|その通りに",
        "system_turn": r"システム(?:メッセージ|通知)?|開発者|管理者",
        "user_turn": r"ユーザー|人間",
        "assistant_turn": r"アシスタント|モデル|ボット",
    },
}


@cache
def order_pattern(kind: OrderKind) -> str:
    """Return the alternation of a kind in all languages; a phrase ends at the edges of words where they have edges."""
    options = []
    for language, phrases in _PHRASES.items():
        lines = "|".join(split_lines(phrases.get(kind, "")))
        if lines:
            options.append(rf"(?<!\w)(?:{lines})(?!\w)" if language_pack(language).edges else rf"(?:{lines})")
    return "|".join(options)
