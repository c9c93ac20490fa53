"""Spanish: cues of speech acts, and signal phrases."""

from ricordo.language.packs import CuePack, SignalPack

__all__ = ["CUE_PACK", "SIGNAL_PACK"]


CUE_PACK: CuePack = {
    "greeting": r"""
^(?:hola|buenos días|buenas (?:tardes|noches)|qué tal|cómo (?:estás|está|va))
""",
    "farewell": r"""
^(?:adiós|hasta (?:luego|mañana|pronto)|nos vemos|chao|buenas noches|cuídate)
""",
    "thanks": r"""
^(?:gracias|muchas gracias|mil gracias|te lo agradezco)
""",
    "acknowledgement": r"""
^(?:sí|si|no|ok(?:ay)?|vale|claro|de acuerdo|perfecto|entendido|exacto|genial|bien|muy bien|por supuesto|de nada
  |listo)[\s.!,]*$
""",
    "praise": r"""
^(?:¡)?(?:bravo|felicidades|enhorabuena|genial|guau|increíble|excelente|qué (?:bien|bueno|bonito|lindo|guay|chulo
  |genial)|(?:eso )?(?:es|suena|está) (?:muy )?(?:genial|bien|increíble|bonito|interesante))
""",
    "wish": r"""
^(?:¡)?(?:buena suerte|mucha suerte|suerte|espero que (?:te|estés|todo))
""",
    "listener": r"""
(?:tú|te|ti|tu|tus|usted|ustedes|vosotros)
""",
    "offer": r"""
^(?:avísame|dime si|puedo (?:\w+ )?(?:ayudar|revisar|mostrar)|voy a (?:revisar|mirar|crear|leer)|quieres que
  |aquí (?:tienes|está))
""",
    "question": r"""
^¿
^(?:qué|quién|cuándo|dónde|por qué|cómo|cuál|puedes|podrías|tienes)\b[^.!]{0,200}\?
\?["')\s]*$
""",
    "request": r"""
^(?:¿)?(?:puedes|podrías|puede|podría)
^(?:por favor,? )?(?:muéstra|explíca|escribe|arregla|añade|crea|elimina|ejecuta|revisa|traduce|busca|encuentra
  |ayúda)(?:me)?
""",
    "remember": r"""
^(?:recuerda|ten en cuenta|no olvides|anota|toma nota|importante|nota|para que (?:sepas|conste))
(?:a partir de ahora|de ahora en adelante|en el futuro|en adelante)
""",
    "decision": r"""
(?:migramos|pasamos|cambiamos|movemos) (?:\S+ ){0,5}?de \S{1,40}(?: \S{1,40}){0,2} a \S
(?:hemos|he|se ha) (?:\w+ )?(?:decidido|elegido|acordado|optado|escogido)
(?:decidimos|decidí|elegimos|elegí|acordamos|optamos|escogimos|quedamos en)
(?:vamos a (?:usar|quedarnos|cambiar|migrar|adoptar)|nos quedamos con|usaremos)
(?:decisión|acuerdo):
(?:cambiamos|cambié|pasamos|migramos|hemos (?:cambiado|pasado|migrado)) de .{1,60} a
""",
    "preference": r"""
(?:prefiero|me gusta|me gustan|me encanta|me encantan|odio|detesto|no me gusta|no me gustan|no como|adoro)
(?:mi|mis|nuestro|nuestra) (?:\w+ ){0,3}(?:favorit[oa]s?|preferid[oa]s?)
soy (?:\w+ )?(?:vegetarian[oa]|vegan[oa]|alérgic[oa]|fan|aficionad[oa])
^(?:por favor,? )?(?:responde|respóndeme|contesta|escríbeme) (?:siempre |en|de forma|brevemente)
""",
    "convention": r"""
(?:a partir de ahora|de ahora en adelante)
(?:se llaman|se nombran|se escriben|se guardan)\b
(?:usa|usamos|utiliza|utilizamos|prefiere) .{1,60}, (?:no|nunca|y no) \S
(?:siempre|nunca|solamente|únicamente|jamás)
(?:hay que|no hay que|se debe|debemos|debe|deben|tienen? que|tenemos que)\b
^(?:por favor,? )?(?:usa|usad|usen|utiliza|no uses|evita)\b
(?:sólo|solo) (?:\w+ ){0,3}(?:desde|con|en|por)
(?:está|están) (?:prohibid[oa]s?|permitid[oa]s?)
(?:es|son) obligatori[oa]s?
(?:regla|convención|norma)(?: \w+){0,3}(?: es|:)
""",
    "lesson": r"""
(?:he|hemos) (?:\w+ )?(?:aprendido|descubierto|comprobado)
(?:aprendí|aprendimos|descubrí|descubrimos|resulta que|resultó)
(?:el problema|la causa|el error|la solución|el motivo)(?: \w+){0,4} (?:era|es|fue|estaba|venía)
(?:la próxima vez)
""",
    "goal": r"""
(?:quiero|queremos|quisiera|me gustaría|planeo|planeamos|espero|pienso|pensamos|voy a|vamos a|estoy planeando)\b
(?:mi|nuestro|el) (?:objetivo|meta|plan|sueño|plazo)(?: \w+){0,2} (?:es|:)
""",
    "correction": r"""
(?:migramos|pasamos|cambiamos|movemos) (?:\S+ ){0,5}?de \S{1,40}(?: \S{1,40}){0,2} a \S
^(?:no|espera|perdón)[,.!]+ ?(?:en realidad|es|yo|no|usa|mejor|el|la|los|quise)
^(?:en realidad|corrección|mejor dicho)
(?:eso|esto) (?:es|está|era) (?:mal|incorrecto|falso|un error)
(?:eso |esto )?no es (?:correcto|cierto|así|verdad)
(?:quise|quería) decir
no .{1,60},? sino
ya no\b
en (?:vez|lugar) de
(?:cambiamos|cambié|pasamos|migramos|cambiado|pasado|migrado) de .{1,60} a
""",
    "fact": r"""
(?:escucha|corre) en\b
(?:me llamo|mi nombre es|vivo en|trabajo (?:en|como|de|para)|soy (?:de|un|una|el|la)|tengo (?:un|una|dos|tres))
(?:está|están) (?:\w+ )?(?:en|bajo)
(?:se llama|depende de|requiere|utiliza|corre en|pertenece)
""",
    "hypothetical": r"""
^(?:si|quizás?|tal vez|a lo mejor|imagina)
(?:quizás?|tal vez|podría|a lo mejor|no estoy segur[oa])
""",
    "self": r"""
(?:yo|me|mí|mi|mis|nosotros|nosotras|nos|nuestro|nuestra|nuestros|nuestras|soy|estoy|tengo|vivo|trabajo|hemos|he
  |tenemos|somos)
""",
    "denial": r"""
^no[,.! ]+no (?:es |en |el |la |al )?(?!.{0,60}\bsino\b)[^,;:]{1,40}$
^(?:no[,.! ]+)?(?:eso (?:no es (?:así|correcto|cierto)|está mal|es falso))[.!]*$
""",
    "moment": r"""
^(?:mira|pon|toma|prueba|abre|usa|revisa|lee|guarda) (?:esto|eso|este|esta|ese|esa|lo)\b
^tengo que .{1,60}\b(?:ahora|ya|rápido)\b
""",
    "heading": r"""
^(?:estas son )?(?:nuestras|las|mis|algunas|unas) (?:\w+ )?(?:reglas|convenciones|normas)(?: \w+){0,4} ?[.:]$
""",
}


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
