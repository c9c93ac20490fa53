"""Spanish signal phrases."""

from ricordo.language.signals.types import SignalPack

__all__ = ["SIGNAL_PACK"]

SIGNAL_PACK = SignalPack(
    signals={
        "correction": r"""
^(?:no|espera|perdón|perdona|qué va)[,.! ]{1,3}(?:eso|esto|así|es|está|no es|quería|quise|me refería|hablaba|usa
  |utiliza|pon|usamos|nosotros|tú|te|el|la|mejor|sino|me has)\b
(?:eso|esto|así|la respuesta|tu respuesta|el resultado) (?:está|es|estaba) (?:mal|incorrect[oa]|equivocad[oa]
  |errón\w{1,2}|fals[oa])
(?:eso|esto|así) no (?:es|está|era) (?:correcto|cierto|así|verdad|bien|lo que)
(?:me has|me ha|has|lo has|me) (?:entendid[oa]|entendiste) mal
te (?:has equivocado|equivocas|equivocaste|confundiste|has confundido)
(?:quería decir|quise decir|me refería a) .{1,60}
^(?:en realidad|corrección|rectifico)\b
^(?:inténtalo de nuevo|inténtalo otra vez|vuelve a (?:intentarlo|hacerlo)|hazlo de nuevo|rehazlo)
no (?:es|son|está|era) .{1,40},? sino\b
^(?:usa|utiliza|pon) .{1,40}(?:en lugar de|en vez de|y no|, no)\b
^(?:espera|un momento|ojo|cuidado|perdona)[,.! ]{1,3}(?:es[eoa]s?|est[eoa]s?|los|las|el|la|yo|tú|no)\b
^.{1,60}, no (?:de|es|el|la|los|las|en) \S{1,30}[.! ]*$
^(?:falso|incorrecto|mal)[,.!:] \S
has (?:cometido un error|calculado mal)
^(?:no|qué va|falso)[,.!:–— ]{1,3}(?:el|la|los|las|nuestro|nuestra|mi) .{1,60}\b(?:es|son|está|están|era|tiene|vive
  |empieza|termina)\b
(?:confundes|estás confundiendo|mezclas|estás mezclando)\b
""",
        "reinforcement": r"""
^(?:sí[,.! ]{1,3})?(?:perfecto|exacto|exactamente|genial|estupendo|excelente|así es|eso es)[,!. ]{1,3}(?:sigue|eso
  |es|así|gracias|justo|como)
^(?:perfecto|exacto|exactamente|excelente|así es|eso es)[.! ]*$
(?:eso|esto|así) es (?:justo|exactamente|precisamente) (?:lo que|como)
justo lo que (?:quería|necesitaba|buscaba)
(?:sigue|continúa|mantenlo) así
me (?:gusta|encanta) (?:cómo|la forma en que) (?:lo )?\w
(?:es|está) (?:perfecto|genial|muy útil|muy bien así)
(?:buen|gran) trabajo
así me gusta
^(?:me encanta|estupendo)[,.! ]{1,3}(?:sigue|así|es|perfecto)
(?:mantén|conserva|sigue con) (?:este|ese|el mismo|la misma) (?:formato|forma|estilo|tono|estructura)
""",
        "preference": r"""
(?:yo )?prefiero\b
(?:a mí )?(?:no )?me (?:gusta|gustan|encanta|encantan|disgusta|molesta)(?: más| mucho| poco)? (?!(?:cómo
  |la forma en que)\b)\S
(?:odio|detesto|adoro)\b
no (?:soporto|aguanto)\b
mi(?:s)? (?:\w{1,20} )?(?:favorit[oa]s?|preferid[oa]s?|preferencia)
^(?:siempre|nunca) (?:responde|respondas|escribe|escribas|usa|uses)\b
^(?:responde|escribe|usa) siempre\b
me (?:molestan?|irritan?|fastidian?) \S
""",
        "identity": r"""
(?:yo )?soy (?:una? |el |la )?(?!de los|yo|así|consciente|fan)\w{2,20}(?:or|ora|ista|ero|era|ente|enta|nte|ico|ica
  |ólogo|óloga|logo|loga|ario|aria|ogado|ogada|ecto|ecta|ino|ina|ano|ana|tra|tro|fermer[oa]|atra|chef)\b
trabajo (?:como|de|en|para|con)\b
mi (?:trabajo|profesión|puesto|oficio|nombre) es
me llamo \S
(?:vivo en|soy de|vengo de|estudio|enseño)\b
(?:yo )?soy (?:una? )?(?:carpinter|panader|cociner|abogad|médic|maestr|camarer|músic|fontaner|fotógraf|bomber
  |ingenier|peluquer|enfermer|arquitect)[oa]\b
(?:dirijo|llevo|tengo) una? (?:taller|tienda|empresa|negocio|panadería|clínica)
soy \w{3,20}(?: \w{3,20})? desde\b
""",
        "goal": r"""
(?:mi|nuestro|nuestra) (?:\w{1,20} )?(?:objetivo|meta|sueño|plan|propósito) (?:\S{1,20} ){0,3}es\b
(?:pienso|planeo|pretendo|espero|tengo pensado|tengo la intención de) (?!que)\w{2,20}(?:ar|er|ir|arme|erme|irme)\b
quiero (?!saber|ver|decir|entender|que|una? (?:lista|tabla|resumen))(?:\S{1,30} ){0,1}\w{2,20}(?:ar|er|ir|arme|erme
  |irme)\b
(?:queremos|planeamos|pretendemos) \w{2,20}(?:ar|er|ir)\b
(?:me estoy preparando|estoy entrenando|estoy ahorrando) para
me gustaría (?!saber|ver|que|entender)\w{2,20}(?:ar|er|ir)\b
""",
        "decision": r"""
(?:hemos|he)(?: finalmente| ya)? (?:decidido|elegido|escogido|optado|acordado|seleccionado)\b
(?:decidimos|elegimos|optamos|acordamos|escogimos)\b
(?:vamos a|voy a) (?:usar|utilizar|elegir|adoptar|quedarnos con|quedarme con|cambiar a|pasar a)\b
(?:usemos|utilicemos|quedémonos con|nos quedamos con|optemos)\b
(?:está|queda) decidido
""",
    },
    denied=r"\b(?:no|nunca|jamás|tampoco|nadie|sin|ni|ningún|ninguna)\b",
    mentioned=r"\b(?:si|dice|dijo|dicen|dice que|pone|aparece|muestra|mensaje|error|botón|palabra|frase|texto"
    r"|título|él|ella|ellos"
    r"|cliente|jefe|jefa|compañero|quizás|quizá|tal vez|alguien|traduce)\b",
)
