"""German signal phrases."""

from ricordo.language.signals.types import SignalPack

__all__ = ["SIGNAL_PACK"]

SIGNAL_PACK = SignalPack(
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
    mentioned=r"\b(?:wenn|falls|ob|sagt|sagte|sagen|meint|meinte er|schreibt|steht|heißt|lautet|anzeigt|zeigt"
    r"|meldung|fehler"
    r"|knopf|wort|satz|text|titel|zitat|er|sie sagt|kunde|kundin|kollege|kollegin|vielleicht|eventuell"
    r"|jemand|übersetze)\b",
)
