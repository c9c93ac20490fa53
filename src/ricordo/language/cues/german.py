"""German cues."""

from ricordo.language.cues.types import CuePack

__all__ = ["CUE_PACK"]

CUE_PACK: CuePack = {
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
}
