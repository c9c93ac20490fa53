"""Spanish cues."""

from ricordo.language.cues.types import CuePack

__all__ = ["CUE_PACK"]

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
