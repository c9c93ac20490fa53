"""German."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACK"]


PACK = LanguagePack(
    code="de",
    name="German",
    letters="äöüß",
    capital_nouns=True,
    words={
        "passing_word": """
heute jetzt gerade momentan gestern morgen abend vormittag nachmittag eben schon noch wieder fast endlich
gleich später bald woche kaffee müde erst
""",
        "lasting_word": """
immer nie niemals jeder jede jedes jeden überall nur muss müssen alle alles niemand grundsätzlich generell bis
seit sonst außer statt standardmäßig pro bleibt mehr künftig beide
""",
        "hearsay_word": """
sagt sagte meint meinte glaubt behauptet erzählt erzählte angeblich wohl gehört schrieb findet könnte würde
vielleicht wenn falls
""",
        "role_word": """
ist sind hat leitet macht betreut verwaltet arbeitet wohnt heißt gehört nutzt läuft kostet zuständig
verantwortlich unser unsere braucht verträgt
""",
        "stop": """
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines ich mich mir mein
meine meinen meinem meiner meines du dich dir dein deine deinen deinem deiner er ihn ihm sein seine seinen seinem
seiner sie ihr ihre ihren ihrem ihrer es wir uns unser unsere unseren unserem unserer euch euer eure man sich selbst
wer wen wem wessen was welche welcher welches welchen wo wann warum wie dieser diese dieses diesen diesem jener jene
jenes jeder jede jedes jeden alle allem allen alles bin bist ist sind seid war waren wart gewesen sein habe hast hat
haben habt hatte hatten gehabt werde wirst wird werden wurde wurden worden kann kannst können konnte konnten muss
müssen musste mussten soll sollen sollte sollten will wollen wollte wollten darf dürfen mag möchte möchten würde
würden und oder aber denn sondern wenn dann als ob dass weil während bis damit falls obwohl also doch in im an am
auf aus bei beim mit nach seit von vom zu zum zur für gegen ohne um durch über unter vor hinter neben zwischen ab
per nicht nur auch noch schon sehr so da hier dort jetzt nun mal eben halt ja nein bitte danke etwas mehr viel
""",
        "function": """
der die das und ist sind war ich du wir ihr nicht ein eine einen einem mit auf für von zu im am den dem des auch
aber immer nur nie niemals bitte mein meine unser unsere wenn oder dass wie was kein keine nein ja haben hat habe
wird werden bei nach aus seit sondern statt jetzt heute gestern verwenden benutzen
""",
        "determiner": """
der die das dem den des unser unsere unserem unseren unserer mein meine meinem meinen meiner jeder jede jedes jedem
""",
        "generic": """
benutzen verwenden nutzen heißen nennen ding sache art weise zeit machen tun haben gehen sagen wissen
""",
        "abbreviation": "z.b d.h u.a bzw ca nr str usw evtl ggf inkl vgl hr fr bspw sog",
        "abbreviation_inside": "z.b d.h bzw vgl",
        "not_name": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "origin": "deutsche deutscher deutsch berliner münchner hamburger",
        "state": """
oma opa studentin vegetarier veganer entwickler entwicklerin arzt ärztin lehrer lehrerin chefin
""",
        "ending": "ern em en er es et e s",
        "light": """
benutzer nutzer nutzerin benutzerin sehr gern gerne am gerade derzeit aktuell momentan eigentlich
""",
        "wish": "will möchte mochte plant hofft",
        "count": "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
        "join": "und oder",
        "before_name": "von aus nach bei mit für zu in",
        "claim_generic": "nutzen verwenden benutzen wechseln umstellen",
        "claim_generic_form": "nutzt jetzt neu statt mehr",
        "denial": "nicht nie niemals kein keine keinen keinem keiner ohne",
        "stance_neutral": "immer meistens weiterhin wirklich mit ein eine einen einem einer",
        "stance_synonym": "liebt",
        "name_part": "von der",
        "person_word": """
ich wir du ihr sie er es mein meine unser unsere der die das den ein eine nutzer ist sind war hat haben
""",
        "denial_word": "nicht kein keine keinen nie niemals ohne mehr",
        "dummy_secret": """
passwort kennwort erforderlich pflichtfeld notwendig freiwillig falsch richtig ungültig gültig abgelaufen vergessen
unbekannt geheim leer
""",
        "not_passphrase": """
aber als auch aus bei beim bitte darf dass dem den der des die ein eine einem einen einer etwa für hat hier ich ihr
ist kann kein keine mehr mit muss nach nicht noch nur oder ohne schon sein sich sie sind soll steht und vom von vor
war wer wenn wie wird wort wörter zum zur zwei drei vier
""",
        "compound_part": "sehr nicht",
        "secret_identifier": "kennwort",
    },
    rows={
        "opposites": """
mag moge liebe bevorzugt bevorzuge|hasst hasse meidet verabscheut, vor|nach|wahrend, mehr|weniger,
immer|nie niemals|manchmal selten, morgens|abends|mittags|nachts,
montag montags|dienstag dienstags|mittwoch mittwochs|donnerstag donnerstags|freitag freitags|samstag|sonntag,
schwester|bruder|mutter|vater|sohn|tochter, gross|klein
""",
        "synonyms": """
mag liebe, wohnt wohne lebt lebe, arbeitet arbeite
""",
    },
    tables={
        "bound_period": """
day 1 = morgen|dem morgigen tag; week 1 = nächster woche|kommender woche; month 1 = nächstem monat|kommendem monat
year 1 = nächstem jahr|kommendem jahr
""",
        "choice_place": """
1 = das erste|die erste|der erste|den ersten|erstes|erstere|ersteres;
2 = das zweite|die zweite|der zweite|den zweiten|zweites|letztere|letzteres
""",
        "factor": """
2 = verdoppeln|verdopple es|das doppelte|doppelt so viel|doppelt so lang|doppelt so lange;
0.5 = halbieren|halbier es|die hälfte|halb so viel|halb so lang|halb so lange
""",
        "weekday": """
0 = montag; 1 = dienstag; 2 = mittwoch; 3 = donnerstag; 4 = freitag; 5 = samstag|sonnabend; 6 = sonntag
""",
        "month": """
1 = januar; 2 = februar; 3 = märz; 4 = april; 5 = mai; 6 = juni; 7 = juli; 8 = august; 9 = september; 10 = oktober;
11 = november; 12 = dezember
""",
        "weeks_behind": "1 = in einer woche; 2 = in zwei wochen",
        "day": """
7 = heute in einer woche|heute in acht tagen; 14 = heute in zwei wochen;
0 = heute; -1 = gestern; -2 = vorgestern; 2 = übermorgen
""",
        "period": """
week -1 = letzte woche; week 1 = nächste woche; week 0 = diese woche; month -1 = letzten monat;
month 1 = nächsten monat; year -1 = letztes jahr; year 1 = nächstes jahr
""",
        "unit": "day = tag|tagen|tage; week = woche|wochen; month = monat|monaten; year = jahr|jahren",
        "number": """
0 = null; 1 = ein|eine|einem|einer; 2 = zwei; 3 = drei; 4 = vier; 5 = fünf; 6 = sechs; 7 = sieben; 8 = acht;
9 = neun; 10 = zehn
""",
        "weekday_side": "-1 = letzte|letzten; 1 = kommende|kommenden; 2 = nächste|nächsten",
        "distance_lead": "-1 = vor; 1 = in",
        "stance_opposite": "erlaubt = verboten; mag = hasst|liebt",
        "numeral": """
0 = null; 0.5 = halb|halbe|halbes; 1 = eins; 2 = zwei; 3 = drei; 4 = vier; 5 = fünf; 6 = sechs; 7 = sieben; 8 = acht;
9 = neun; 10 = zehn; 11 = elf; 12 = zwölf; 13 = dreizehn; 14 = vierzehn; 15 = fünfzehn; 16 = sechzehn; 17 = siebzehn;
18 = achtzehn; 19 = neunzehn; 20 = zwanzig; 30 = dreißig|dreissig; 40 = vierzig; 50 = fünfzig; 60 = sechzig;
70 = siebzig;
80 = achtzig; 90 = neunzig; 100 = hundert; 1000 = tausend; 1000000 = million|millionen
""",
        "numeral_join": "0 = und",
        "numeral_article": "1 = ein|eine|einen|einem|einer; 0.5 = ein halbes",
        "measure": """
time 1 = sekunde|sekunden; time 60 = minute|minuten; time 3600 = stunde|stunden; time 86400 = tag|tage|tagen;
time 604800 = woche|wochen; time 2592000 = monat|monate|monaten; time 7776000 = quartal|quartale;
time 31536000 = jahr|jahre|jahren; EUR 1 = euro; share 1 = prozent
""",
    },
    phrases={
        "next_weekday": "nächste[mnr]?",
        "open_question": r"""
was|welche[rsmn]?|wer|wem|wen|wessen|wo|wohin|woher|wann|wie (?:viele?|lange?|oft|alt|groß|hoch|weit|spät
  |heiß\w+)
""",
        "question_context": r"""
er|ihn|ihm|seine?[rnms]?|beides?|davon|damit|dafür|dort|genug|auch|das (?:so|noch|richtig)|(?:ist|stimmt
  |passt|reicht) das
""",
        "evasion": r"""
weiß (?:ich|nicht)|ich weiß (?:es )?(?:noch )?nicht|keine ahnung|kommt (?:drauf|darauf) an|mal (?:sehen
  |schauen|gucken)|frag\w* \w+
(?:das )?(?:sag|schreib|schick)e? ich dir|muss ich|später|noch (?:nicht|offen|unklar)|gute frage|vielleicht
  |moment|egal|schauen wir|entscheide? du|such dir
""",
        "asked_action": r"(?:soll(?:en|te|ten)?|müssen|muss|dürfen) (?:ich|wir) (?P<action>[^?]{3,100}?)\?",
        "lead_in": r"""
(?:notiz|notiert|merke|hinweis|erinnerung|außerdem|ferner|wichtig|zu (?:beachten|merken)):
""",
        "topic_change": "jedenfalls|übrigens",
        "omitted": r"""
(?:\w+ ){0,2}(?:weitere|noch) (?:\w+ ){0,2}(?:zeilen|einträge|seiten|zeichen)\b
[\w ]{0,20}(?:gekürzt|ausgelassen|abgeschnitten)\b
""",
        "recurring": "geburtstag|jahrestag|namenstag|hochzeitstag|jedes jahr|jährlich",
        "no_date": "von heute auf morgen",
        "month_begin": r"anfang",
        "month_end": r"ende",
        "asked_subject": r"""
(?:was|wer|wann|wo|welches|wie (?:lang|lange|hoch|groß|viel|alt)) (?:ist|sind|war)
  (?P<subject> (?:der|die|das|unser|unsere) [^?,;:]{2,60}?)\?
""",
        "pronoun_subject": "(?:er|sie|es)\\b|(?:das|dies) (?:ist|sind|war|geht|kommt|heißt|muss|kann|soll|wird|hat)\\b",
        "problem": r"""
fehler|geht nicht|funktioniert nicht|kaputt|hängt|stürzt ab|klappt nicht|immer noch|kommt nicht
""",
        "machine_address": r"""
(?:hinweis|notiz|nachricht|anweisung|achtung) (?:an|für) (?:den |die |das |alle )?(?:ki|digitalen?|virtuellen?)?[ -]*
  (?:assistent\w*|agent\w*|bots?|modelle?|ki|sprachmodelle?)
(?:an|für) (?:den |die |alle )?(?:ki[- ])?(?:assistent\w*|agenten?|systeme),? (?:der|die|das|welche)\b
(?:falls|wenn|sofern) (?:ein|eine|der|die) (?:ki|digitaler?|virtueller?)[ -]*(?:assistent\w*|agent\w*)?
ki-?(?:assistenten|agenten|systeme|helfer)\b[^.:]{0,60}(?::|sollen|müssen|bitte)
""",
        "valid_from": "ab|von",
        "valid_since": "seit",
        "valid_until": "bis",
        "past_state": "war|waren|hatte|hatten",
        "ended_lead": r"""
weg von|Schluss mit|(?:an)?statt(?!\s+zu\b)|anstelle von
""",
        "limit": "unter|höchstens|maximal|maximum|bis zu|nicht mehr als|weniger als|obergrenze|grenze|limit|budget",
        "ended_tail": r"""
(?:(?:ist|sind|war|waren) )?(?:viel |einfach )?zu (?:wenig|kurz|lang|viel|klein|groß|spät|früh|knapp|hoch|niedrig)
  |nicht mehr
""",
        "change_cue": r"""
jetzt|inzwischen|mittlerweile|nicht mehr|kein\w* mehr|statt(?:dessen)?|anstatt|ab sofort|ab jetzt
  |ab (?:dem )?\w+|seit(?:dem)?
(?:um|auf|ein)gestellt|umgestiegen|gewechselt|wechsel\w*|umgezogen|geändert|ändert sich|ersetzt|verschoben
  |verlegt|erhöht
gesenkt|verlängert|verkürzt|umbenannt|abgeschafft|aufgehört|beendet|neuerdings|neu|wieder|doch|künftig|nun
""",
        "ordinal_month": r"""
januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|jan|feb|mär|apr|jun|jul
aug|sep|okt|nov|dez
""",
        "announcement": r"kurze notiz[^:]{0,40}|noch (?:etwas|eins|was)|übrigens",
        "repetition": r"wie (?:schon |bereits )?(?:gesagt|erwähnt)(?:,\s*|\s*:\s+)",
        "ordinal_suffix": r"\.",
        "year_lead": r"im\s+jahr|seit",
        "weekday_lead": "am",
        "day_time": "früh|morgen|vormittag|mittag|nachmittag|abend|nacht",
        "name_particle": "von|der",
        "given_name_particle": "von|der",
        "greeting": "hallo|guten (?:tag|morgen|abend)|moin|servus",
        "greeting_all": "zusammen",
        "name_opening": "ich hei(?:ß|ss)e|mein name ist|(?:bitte )?nenn mich",
        "name_opening_unsure": "ich bin",
        "after_name": "und|aus",
        "person_lead": r"""
(?:mein|unser|ihr|sein|dein)e?[nmrs]? (?:[\w-]+ ){0,2}(?:frau|mann|partnerin?|sohn|tochter|schwester|bruder|mutter
 |vater|mama|papa|tante|onkel|cousine?|nichte|neffe|oma|opa|freundin?|nachbar(?:in|n)?|kolleg(?:e|in|en)|chefin?
 |entwickler(?:in)?|designer(?:in)?|ärztin|arzt|zahnarzt|zahnärztin|lehrer(?:in)?)
(?:herrn?|frau|dr\.|prof\.)
""",
        "project_lead": "(?:das |im |unser |dem )?(?:projekt|repo|repository)",
        "noun_like_name": r"""
\w+(?:er|in|ist|ent|ant|eur|or|iker|arzt|mann|frau|ling|ung|heit|keit|fan|chef|profi|kind|nerd|gast|e)
""",
        "acknowledgement": r"""
danke|danke dir|danke schön|dankeschön|vielen dank|besten dank|alles klar|verstanden|ja|gut|in ordnung|passt
super|prima|klar|genau
""",
        "daily": "jeden tag|täglich",
        "weekly": "jede woche|wöchentlich",
        "monthly": "jeden monat|monatlich",
        "yearly": "jedes jahr|jährlich",
        "silent": "arbeitet als|zurzeit|im moment",
        "negation": r"nicht|kein\w*|nie(?:mals)?|ohne",
        "comparison": r"\bstatt\b|\blieber\b.{1,60}\bals\b",
        "claim_negation": r"nicht|kein\w*|nie(?:mals)?|ohne",
        "present_negation": r"nicht(?: mehr)?|kein\w*|nie(?:mals)?",
        "only": "nur",
        "clause_join": "weil|aber|denn",
        "change": "umgestellt|gewechselt|wechseln|umgezogen|statt|ab sofort|ab jetzt|nicht mehr|jetzt",
        "from": "von|vom",
        "to": "auf|zu|nach",
        "change_verb": r"""
umgestellt|umgestiegen|umgezogen|gewechselt|gewandert|migriert|verschoben|verlegt|geändert|erhöht|gesenkt
  |umbenannt|wechseln|umsteigen
""",
        "instead_of": "statt|nicht|nicht mehr",
        "value_lead": "am|im|den|die|das",
        "home_verb": "wohnt|wohne|lebt|zog",
        "now": "jetzt",
        "home_place": "nach",
        "work_verb": r"(?:arbeitet|arbeite)\s+bei",
        "port_verb": r"(?:lauscht|läuft)\s+auf(?:\s+port)?(?=\s+\d)|port\s+ist",
        "name_verb": "heißt|heisst",
        "subject_lead": r"die|der|das|unser\w*|mein\w*",
        "copula": "ist|sind",
        "denying": "nicht",
        "partly": r"nur|immer|alle|jede\w*",
        "no_in_stance": "nein",
        "first_person_subject": r"ich|mich|mir|mein\w*",
        "at_present": "(?:diese|nächste) woche|heute|gerade|im moment",
        "whereabouts": "im (?:büro|urlaub)|zu hause|krank|unterwegs|nicht da|in bereitschaft",
        "being": "ist|sind|war|waren",
        "work_word": r"arbeit\w*|beruf\w*|firma|projekt\w*|kund\w+",
        "we": r"wir|unser\w*",
        "order_word": r"immer|niemals|ignorier\w*",
        "password_name": "passwort|kennwort",
        "code_name": "geheimzahl",
        "purpose_lead": "für|von",
        "secret_copula": "ist|war|lautet",
        "after_secret": "und",
        "secret_description": "(?:too )?(?:falsch|richtig|sicher)",
        "card_word": "karte|kredit",
        "no_in_reply": "nein|nee|nö",
        "yes_or_no": "ja|nein",
        "own_subject": r"wir|unser\w*",
        "no_in_rule": "nein",
        "points_back": "das|dies|weil|sonst|bis dahin|seitdem|da(?:vor|nach)",
        "rule": "nie(?:mals)?|immer",
        "contradiction": "nein|stimmt nicht|falsch|geht (?:immer noch )?nicht",
        "agreement": r"""
gut|genau|ja|passt|super|klappt|läuft|geht(?: jetzt| wieder)?|das war['’]?s|gelöst|perfekt|stimmt
""",
        "introduction": "ich bin",
        "next_step": "ich|mir",
        "choice_or": "oder",
        "no_in_summary": "nein",
        "objection": "nicht",
        "question_tag": "nicht wahr|oder",
        "ask_number": r"\bwie ?(?:viele?|oft|lange)\b",
        "ask_time": r"\bwann\b",
        "ask_place": r"\b(?:wohin|wo)\b",
        "ask_person": r"\b(?:wer|wem|wen)\b",
        "ask_one_time": "wie (?:lange|oft|alt)|erste[rsn]?|letzte[rsn]?",
        "ask_first_person": r"ich|mein\w*|mir|mich",
        "time_article": "dem|der",
        "before": "vor|bis",
        "after": "nach|seit",
        "month_lead": "im|seit|vor|nach|bis|letzten",
        "name_join": "und|oder",
        "polite_opening": "bitte|und|also",
        "question_word": "wer|wen|wem|was|wo|wohin|woher|wann|wie|warum|wieso|weshalb|welche[rsmn]?|ob",
        "question_opening": "wer|wen|wem|was|wo|wann|wie|warum|wieso|welche[rsmn]?",
        "memory_request": r"""
(?:sag(?:e|t|en sie)?|zeig(?:e|t|en sie)?|nenn(?:e|t|en sie)?|gib|gebt|erklär(?:e|t|en sie)?
  |verrat(?:e)?)\s+(?:mir|uns)\b(?!,?\s+dass\b)
erinner(?:e|t|n sie)? (?:mich|uns) (?:an|wer|wen|wem|was|wo|wohin|woher|wann|wie|warum|wieso|weshalb
  |welche[rsmn]?|ob)\b
nenne\s+\S|liste\s+\S+.*\sauf\b
""",
        "remember_verb": r"""
merk(?:e|t)?\s+(?:dir|euch)|merken sie sich|denk(?:e|t)?\s+dara?n|vergiss(?:\s+(?:bitte\s+)?nicht)
""",
        "remember_please": "bitte",
        "remember_that": "dass",
        "remember_of": "an",
        "remember_clause_verb": "notiere?|notier dir",
        "remember_self": "bitte",
        "remember_clause_that": "dass",
        "strong_secret_name": r"""
(?<!\w)zugangscode
wi-?fi[- ]schlüssel|wlan[- ]schlüssel
""",
        "medium_secret_name": r"""
(?:api|zugangs|geheim)[- ]?schlüssel|schlüssel (?:für|zu[rm]?|der|von) (?:(?:die|der|das) )?api
""",
        "secret_name_hint": "üssel|ÜSSEL",
        "secret_name_ascii": "zugangscode",
        "secret_is": "ist|war|lautet|heißt",
        "secret_is_foreign": "lauten",
        "secret_is_now": "jetzt",
        "secret_purpose": "für|vom?|zu[mr]?|de[rsl]?",
        "user_name": "benutzer(?:name)?",
        "user_and": "und|mit",
        "secret_lead": "mit|dem|neues?",
        "secret_article": "das|dem",
        "secret_column": "passwort|kennwort",
        "seed_phrase_name": "wiederherstellungsphrase",
        "seed_phrase_is": "ist|lautet",
        "pin_owner": "von|der|de[rsl]?|für|zu[rm]?",
        "pin_is": "ist|lautet",
        "pin_unit": "Ziffer|Stelle",
        "pin_of": "meine?",
        "passphrase_is": "ist|lautet",
        "login_name": "zugang|zugangsdaten",
        "secret_block_name": "kennwort",
        "pin_hint": "pin ist|pin lautet",
    },
    cues={
        "greeting": r"""
^(?:hallo|hi|hey|moin|servus|guten (?:morgen|tag|abend)|grüß|wie geht)
""",
        "farewell": r"""
^(?:tschüss|tschüs|ciao|bis (?:bald|dann|später|morgen)|auf wiedersehen|schönen (?:tag|abend)|mach'?s gut|gute nacht)
""",
        "thanks": r"""
^(?:danke|vielen dank|herzlichen dank|besten dank|dankeschön)
""",
        "acknowledgement": r"""
^(?:ja|nein|ok(?:ay)?|gut|genau|klar|alles klar|passt|stimmt|verstanden|gerne|super|prima|perfekt|kein problem
  |sicher|natürlich)[\s.!,]*$
""",
        "praise": r"""
^(?:toll|super|wow|klasse|großartig|prima|perfekt|herzlichen glückwunsch|gut gemacht|wunderbar|das (?:ist|klingt
  |sieht)(?: \w+){0,2} (?:toll|super|gut|schön|großartig|spannend|interessant))
""",
        "wish": r"""
^(?:viel (?:glück|erfolg|spaß)|alles gute|gute besserung|ich hoffe,? (?:du|ihr|sie|es))
""",
        "listener": r"""
(?:du|dich|dir|dein|deine|deinen|deinem|deiner|ihr|euch|euer|eure)
""",
        "offer": r"""
^(?:lass mich|sag (?:mir )?bescheid|gerne helfe|ich (?:kann|werde|helfe)(?: \w+){0,3} (?:helfen|prüfen|schauen
  |erstellen|gerne)|soll ich|möchtest du|wenn du (?:möchtest|willst|fragen)|hier (?:ist|sind))
""",
        "question": r"""
^(?:was|wer|wen|wem|wann|wo|wohin|warum|wieso|wie|welche[rsnm]?|kannst|könntest|können|hast|habt|bist|ist|sind|soll
  |sollen|gibt)\b[^.!]{0,200}\?
\?["')\s]*$
""",
        "request": r"""
^(?:kannst|könntest|können|würdest) (?:du|sie|ihr)
^(?:bitte )?(?:zeig|erklär|schreib|mach|prüf|finde|erstelle|füge|lösche|hilf|such|öffne|übersetze
  |starte)\w{0,3} (?:mir |bitte |mal )?
""",
        "remember": r"""
^(?:bitte )?(?:merk dir|merke dir|denk daran|vergiss nicht|beachte|wichtig|hinweis|notiz|zur info)
(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig|zukünftig)
""",
        "decision": r"""
wir (?:ersetzen|ziehen|stellen|steigen) .{1,60}(?:durch|um)\b
(?:wir|ich) (?:haben|habe) (?:uns |mich )?(?:\w+ ){0,8}(?:entschieden|geeinigt|beschlossen|gewählt|festgelegt)
(?:wir|ich) (?:nehmen|nehme|verwenden ab|bleiben bei|bleibe bei|setzen auf|steigen|wechseln|migrieren)
(?:es wurde|wurde|ist) (?:\w+ ){0,4}(?:beschlossen|entschieden|vereinbart)
(?:entscheidung|beschluss):
(?:haben|sind) (?:\w+ ){0,3}von .{1,60} (?:auf|zu|nach) .{1,60}(?:gewechselt|umgestellt|umgestiegen|migriert)
""",
        "preference": r"""
wie (?:immer|üblich|gehabt|letztes mal)|(?:schon )?wieder zu \w+
ich (?:mag|liebe|bevorzuge|hasse|esse|trinke|möchte lieber|hätte lieber|will lieber|arbeite lieber|nutze lieber)
(?:mir|uns) (?:gefällt|gefallen|schmeckt|ist (?:\w+ ){0,3}lieber)
ich .{1,60}(?:lieber|am liebsten|besonders gern|nicht gern|ungern|sehr gern)
(?:mein|meine|unser)\w* (?:lieblings\w+|bevorzugte\w*)
ich bin (?:\w+ )?(?:vegetarier|vegetarierin|veganer|veganerin|allergisch)
^(?:bitte )?(?:antworte|antworten sie|schreib|sprich) (?:mir |bitte )?(?:immer |nur )?(?:auf|kurz|knapp|in)
""",
        "convention": r"""
(?:ab jetzt|ab sofort|von nun an)
(?:schreiben|benennen|nennen|mergen|rebasen|squashen|committen|deployen|testen|verwenden|nutzen|speichern
  |brauchen) wir (?:\w+ ){0,3}(?:auf|in|mit|als|per|nur|unter|nach)\b
wir (?:schreiben|benennen|mergen|rebasen|squashen|deployen|committen|reviewen)\b(?! (?:jetzt|heute|gerade|gleich|das
  |es)\b)
(?:heißen|heißt) (?:bei uns|immer|grundsätzlich|nach)\b
(?:muss|müssen|darf|dürfen) (?:\w+ ){0,8}(?:bleiben|enthalten|kommen|geben|prüfen|freigeben)
^(?:bitte )?(?:nimm|verwende|benutze|nutze|schreib|installiere) .{1,60}, (?:nicht|kein\w*|nie)
(?:immer|niemals|nie|nur|ausschließlich|grundsätzlich|stets) (?:\w+ ){0,6}
(?:muss|müssen|darf|dürfen|soll|sollen) (?:\w+ ){0,8}(?:werden|sein|stehen|liegen|haben|benutzen|verwenden|laufen)
^(?:bitte )?(?:verwende|benutze|nutze|nimm|nehmt|verwendet|benutzt)\b
(?:verboten|erlaubt|vorgeschrieben|pflicht)
(?:regel|konvention|richtlinie|standard)(?: \w+){0,3}(?: ist|:| lautet)
""",
        "lesson": r"""
(?:ich|wir) (?:habe|haben) (?:\w+ ){0,4}(?:gelernt|herausgefunden|festgestellt|gemerkt)
(?:es )?stellt(?:e)? sich heraus
(?:das problem|die ursache|der fehler|der grund|die lösung)(?: \w+){0,3} (?:war|ist|lag|liegt)
(?:nächstes mal|im nachhinein|beim nächsten mal)
""",
        "goal": r"""
(?:ich|wir) (?:will|wollen|möchte|möchten|plane|planen|werde|werden|habe vor|haben vor)\b
(?:mein|unser|das)\w* (?:ziel|plan|traum|frist|deadline|vorhaben)\w* (?:ist|sind|:)
""",
        "correction": r"""
^(?:nein|nee|moment|halt)[,.! ]+nicht \S
(?:wechseln|migrieren|ziehen|steigen|stellen) .{0,40}?von .{1,60} (?:auf|zu|nach) \S
^(?:nein|nee|doch|halt|moment)[,.! ]+(?:eigentlich|das|ich|wir|nicht|nimm|es|der|die|bitte|verwende|nutze)
^(?:eigentlich|korrektur|vielmehr|genauer gesagt)
(?:das|dies) (?:ist|war|stimmt) (?:falsch|nicht (?:richtig|korrekt|mehr)|ein (?:fehler|missverständnis))
(?:das|es) stimmt nicht
ich meinte
(?:nicht|kein\w*) .{1,60},? sondern
(?:nicht mehr|statt(?:dessen)?)
von .{1,60} (?:auf|zu|nach) .{1,60}(?:gewechselt|umgestellt|umgestiegen|migriert)
""",
        "fact": r"""
(?:lauscht|läuft|hört) auf \S
(?:ich heiße|mein name ist|ich wohne|ich lebe|ich arbeite|ich komme aus|ich bin (?:ein|eine|der|die|in|aus|\w+in
  |\w+er)|ich habe (?:einen|eine|zwei|drei))
(?:liegt|liegen|steht|stehen|läuft|laufen|befindet sich|befinden sich) (?:\w+ )?(?:in|im|unter|auf|bei)
(?:heißt|benötigt|verwendet|gehört zu|ist zuständig|ist geschrieben)
""",
        "hypothetical": r"""
^(?:wenn|falls|angenommen|vielleicht|eventuell)
(?:vielleicht|könnte|womöglich|eventuell|nicht sicher)
""",
        "self": r"""
(?:ich|mich|mir|mein|meine|meinen|meinem|meiner|wir|uns|unser|unsere|unseren|unserem)
""",
        "denial": r"""
^(?:nein|nee|moment|halt)[,.! ]+nicht (?!.{0,60}\bsondern\b)[^,;:]{1,60}$
^(?:nein[,.! ]+)?(?:das|es) (?:stimmt nicht|ist (?:falsch|nicht richtig))[.!]*$
^was (?:ich|wir) .{1,80}(?:gilt nicht mehr|ist hinfällig|stimmt nicht mehr)
""",
        "moment": r"""
^(?:bitte )?(?:schau|guck|sieh|nimm|leg|pack|probier|mach|lösch|kopier|lies|öffne)\w{0,2} (?:dir |mir )?(?:das
  |dies\w*|es|mal|hier|bitte)\b
^ich (?:muss|bin|gehe) .{0,60}\b(?:jetzt|gleich|kurz|schnell|mittag)\b
^(?:bin |ich bin )?(?:gleich|in \w+ \w+|um \w+) (?:wieder da|zurück)
""",
        "heading": r"""
^(?:hier )?(?:ein paar |unsere |meine |die |noch )?(?:\w+ )?(?:regeln|konventionen|richtlinien
  |vorgaben)(?: \w+){0,4}[.:]$
""",
    },
    signals={
        "correction": r"""
^(?:nein|nee|nö|moment|halt|stopp|sorry|quatsch)[,.!:–— ]{1,3}(?:das|so|es|dies|ich (?:meinte|meine|wollte|sagte
  |habe)|nicht|nimm|verwende|benutz|nutze|wir|du|sondern|falsch|der|die|bitte)\b
(?:das|dies|es|deine antwort|das ergebnis) (?:ist|war) (?:leider |einfach |so |völlig |immer noch )?(?:falsch
  |verkehrt|nicht (?:richtig|korrekt|wahr|das,? was ich))
(?:das|dies|so) stimmt (?:so |leider |immer noch )?nicht
du hast (?:mich |das |es |da |hier )?(?:falsch|missverstanden|etwas falsch|verwechselt|dich (?:geirrt|vertan))
^(?:eigentlich|korrektur|richtigstellung)\b
ich (?:meinte|meine) .{1,60}(?:, nicht|nicht)\b
so (?:war das|habe ich das) nicht gemeint
^(?:bitte )?(?:versuch(?:e)? es noch ?(?:ein)?mal|mach(?:e)? (?:es|das) noch ?(?:ein)?mal|noch ?mal von vorn)
nicht .{1,40}, sondern\b
^(?:nimm|verwende|benutze?) (?:stattdessen|lieber) \S{1,40}
^(?:nimm|verwende|benutze?) .{1,40}(?:, nicht|statt)\b
^(?:falsch|irrtum|verkehrt)[,.!:] \S
^(?:moment|halt|warte|stopp)[,.! ]{1,3}(?:du|sie|das|die|der|es|ich) \S
du (?:irrst dich|hast dich (?:verrechnet|verlesen|vertippt)|liegst falsch|verwechselst)
^(?:das|es|die|der) .{1,50}, nicht \S
^(?:nein|nee|nö|falsch)(?: doch)?[,.!:–— ]{1,3}(?:der|die|das|den|unser|unsere|mein|meine|es|dort|da
  |hier) .{1,60}\b(?:ist|sind|war|waren|liegt|läuft|heißt|gilt|steht|hat|kommt|endet|beginnt)\b
du (?:hast|verwechselst|vertauschst) .{1,50}(?:verglichen|verwechselt|vertauscht|durcheinander\w{0,10})
""",
        "reinforcement": r"""
^(?:ja,? )?genau(?: so|,? so| das| richtig)(?: (?:hatte|habe) ich|,? danke|[.! ]*$|,? wie)
^(?:ja,? )?(?:perfekt|genau|super|prima|wunderbar|ausgezeichnet|hervorragend)[,!. ]{1,3}(?:genau|so|danke|das ist
  |das war|weiter so|wie)\b
^(?:perfekt|ausgezeichnet|hervorragend)[.! ]*$
(?:das|so) ist (?:genau )?(?:richtig|korrekt|perfekt|super|großartig|sehr hilfreich|das,? was ich|was ich (?:wollte
  |brauche))
(?:weiter so|mach (?:bitte )?(?:genau )?so weiter|behalte? das (?:so )?bei)
(?:gut|super|toll) gemacht
so ist (?:es|das) (?:genau )?(?:perfekt|richtig|gut|super)
(?:bitte )?(?:immer|weiterhin|in zukunft) (?:genau )?so[.! ]*$
(?:format|stil|ton|form|aufbau)\b.{0,20} (?:bitte )?(?:so )?(?:beibehalten|behalten|passt)
""",
        "preference": r"""
ich (?:\w{1,15} )?(?:bevorzuge|mag|liebe|hasse)\b
ich (?:arbeite|schreibe|trinke|esse|lese|höre|habe|hätte|nutze|nehme) (?:\w{1,15} ){0,3}(?:lieber|am liebsten|gern
  |gerne|ungern)\b
ich kann .{1,30} nicht (?:leiden|ausstehen)
(?:mein|meine) (?:liebling\w{1,20}|bevorzugte[rsn]?|vorliebe)
mir (?:gefällt|gefallen|ist .{1,30} lieber|wäre .{1,30} lieber)
^(?:bitte )?(?:antworte|schreib(?:e)?|nutze|verwende|sprich) (?:mir )?(?:immer|nie|niemals|grundsätzlich)\b
(?:am liebsten|lieber) (?:habe|hätte|mag|nehme|lese|sehe|ist|sind|trinke|esse|arbeite) (?:ich|mir)
mir (?:ist|sind|wäre|wären) .{1,40} (?:lieber|am liebsten)
.{1,40} (?:nervt|nerven|stört|stören) mich
""",
        "identity": r"""
ich bin (?:von beruf )?(?:eine?|der|die)? ?(?!fertig|sicher|froh|müde|gleich|bald|gerade|noch|schon|hier|wieder
  |bereit)\w{2,20}(?:er|erin|ist|istin|ent|entin|arzt|ärztin|wirt|wirtin|amme|frau|mann|koch|köchin|ingenieur
  |ingenieurin|ekt|ektin|or|orin|wältin|anwalt|in)\b(?! (?:der|dem|die|den|das|einem|einer))
ich arbeite (?:als|bei|für|in|am|an der|im)\b
mein(?:e)? (?:beruf|job|tätigkeit|name) ist
ich heiße \S
ich (?:wohne|lebe|komme aus|stamme aus|studiere)\b
ich bin (?:eine? )?(?-i:[A-ZÄÖÜ])[a-zäöüß]{3,20}(?: und| in| bei| aus|[.,]|$)
ich (?:leite|unterrichte|betreibe|führe)\b
ich bin (?:schon )?seit .{1,20} (?-i:[A-ZÄÖÜ])[a-zäöüß]{3,20}
""",
        "goal": r"""
mein(?:e)? (?:\w{1,20} )?(?:ziel|plan|traum|absicht) (?:für .{1,30} )?(?:ist|bleibt)
unser(?:e)? (?:\w{1,20} )?(?:ziel|plan) ist
ich (?:plane|beabsichtige|habe vor|nehme mir vor|trainiere für|spare auf|bereite mich auf)\b
ich (?:möchte|will) (?!wissen|fragen|verstehen|sehen|sagen|nur|nicht|kurz|dass|ein(?:e|en)? (?:liste
  |tabelle))(?:\S{1,30} ){0,8}(?:lernen|werden|schreiben|schaffen|erreichen|abschließen|bauen|ziehen|umziehen|laufen
  |veröffentlichen|eröffnen|gründen|machen|fertig\w{0,10})
wir (?:wollen|möchten|planen) (?:\S{1,30} ){0,8}(?:bis|nächste[snm]?|im)\b
als nächstes (?:werde|will|möchte) ich
bis .{3,25} (?:will|möchte) ich\b
ich will .{1,30}(?:nach|in) \S{1,20} ziehen
""",
        "decision": r"""
(?:wir|ich) (?:haben?|hab) (?:uns|mich)? ?(?:(?!nicht|nie|kein)\S{1,30} ){0,5}(?:entschieden|beschlossen|geeinigt
  |festgelegt|gewählt
  |ausgesucht)
(?:wir|ich) (?:nehmen|nehme|verwenden|nutzen|benutzen|setzen auf|bleiben bei|bleibe bei|wechseln zu
  |steigen auf) (?:jetzt |künftig |ab jetzt )?(?:\S{1,30}){1}(?: (?:um|für|als|statt|ab)\b|[.! ,]|$)
(?:lass(?:t)? uns|wir sollten) (?:\S{1,30} ){0,4}(?:nehmen|verwenden|nutzen|benutzen|einsetzen)
das (?:ist|steht) (?:jetzt |damit )?(?:beschlossen|entschieden|fest)
^(?:beschlossen|entschieden|abgemacht)(?:[:,.!]|$)
""",
    },
    denied=r"\b(?:nicht|nie|niemals|kein|keine|keinen|kaum|niemand|weder|ohne)\b",
    mentioned=(
        r"\b(?:wenn|falls|ob|sagt|sagte|sagen|meint|meinte er|schreibt|steht|heißt|lautet|anzeigt|zeigt|meldung"
        r"|fehler|knopf|wort|satz|text|titel|zitat|er|sie sagt|kunde|kundin|kollege|kollegin|vielleicht|eventuell"
        r"|jemand|übersetze)\b"
    ),
)
