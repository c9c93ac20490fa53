"""Spanish."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACK"]


PACK = LanguagePack(
    code="es",
    name="Spanish",
    letters="ñ¿¡áíóú",
    words={
        "passing_word": """
hoy ahora ahorita ayer mañana tarde noche ya todavía aún casi fin pronto luego semana café cansado cansada
acaba acabo
""",
        "lasting_word": """
siempre nunca jamás cada sólo solo debe hay todos todas todo nadie normalmente hasta desde si_no salvo defecto
por queda adelante más únicamente
""",
        "hearsay_word": """
dice dijo dicen piensa cree jura cuenta parece dizque oído escribió quiere querría podría sería quizás quizá
igual si
""",
        "role_word": """
es son tiene lleva dirige hace maneja trabaja vive llama pertenece usa usamos cuesta responsable nuestro
nuestra encarga alérgico alérgica
""",
        "stop": """
el la los las lo un una unos unas del al este esta estos estas ese esa esos esas aquel aquella esto eso yo me mí tú
te ti él ella ello nosotros nosotras vosotros ustedes usted ellos ellas nos os se le les mi mis tu tus su sus
nuestro nuestra nuestros nuestras vuestro vuestra que quien quién qué cual cuál cuando cuándo donde dónde como cómo
soy eres es somos son fui fue fueron era eran ser sido estoy está están estaba estar estamos he has ha hemos han
había haber hay tengo tiene tener voy va van ir puedo puede pueden y e o u pero sino si porque aunque mientras pues
a ante bajo con contra de desde en entre hacia hasta para por según sin sobre tras no ni sí ya muy más menos tan
también tampoco todo toda todos todas aquí ahí allí ahora entonces gracias
""",
        "function": """
el la los las y es son yo tú usted nosotros no un una en para con de del al que mi mis nuestro nuestra siempre nunca
pero o si este esta sí gracias estoy soy hemos he ha por favor solo sólo hay muy ahora vivo a migramos pasamos
prefiero
""",
        "determiner": "el la los las nuestro nuestra nuestros nuestras mi mis cada",
        "generic": "usar utilizar llamar cosa tipo clase manera tiempo hacer tener ir tomar decir saber",
        "abbreviation": "sr sra ud uds pág núm ej p.ej",
        "origin": """
alemán alemana española español francés francesa inglés inglesa italiano italiana mexicano mexicana argentino
argentina colombiano colombiana chileno chilena peruano peruana portugués portuguesa brasileño brasileña
""",
        "ending": """
aciones acion ando iendo aban amos emos imos aron ieron ado ada ido ida ar er ir an en as os es a o e s
""",
        "light": "usuario usuaria muy realmente actualmente",
        "wish": "quiere espera desea",
        "count": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "join": "y o",
        "before_name": "a con en de",
        "name_part": "y",
        "person_word": "yo nosotros el los las es son",
        "denial_word": "nunca jamas sin ya",
        "dummy_secret": """
contrasena obligatorio obligatoria requerido requerida opcional incorrecta incorrecto inválida inválido olvidada
vencida vacía
""",
        "not_passphrase": """
como con cuatro del desde dos ella esta este está frase hay los las más muy nada palabra palabras para pero por
puede que ser sin sobre son sus todo tres una unas usar
""",
    },
    rows={
        "opposites": """
gusta encanta prefiere|odia detesta evita, antes|despues|durante, mas|menos, siempre|nunca|veces,
manana|tarde|noche, lunes|martes|miercoles|jueves|viernes|sabado|domingo,
hermana|hermano|madre|padre|hijo|hija
""",
        "synonyms": """
vive reside, gusta encanta, trabaja
""",
    },
    tables={
        "bound_period": """
day 1 = mañana; week 1 = próxima semana|semana que viene; month 1 = próximo mes|mes que viene
year 1 = próximo año|año que viene
""",
        "choice_place": """
1 = el primero|la primera|primero|primera;
2 = el segundo|la segunda|segundo|segunda|lo segundo
""",
        "factor": "2 = el doble|dóblalo|duplícalo; 0.5 = la mitad|mitad",
        "weekday_form": """
5 = sábados; 6 = domingos
""",
        "weekday": "0 = lunes; 1 = martes; 2 = miércoles; 3 = jueves; 4 = viernes; 5 = sábado; 6 = domingo",
        "month": """
1 = enero; 2 = febrero; 3 = marzo; 4 = abril; 5 = mayo; 6 = junio; 7 = julio; 8 = agosto; 9 = septiembre;
10 = octubre; 11 = noviembre; 12 = diciembre
""",
        "day": """
7 = de hoy en ocho días|de hoy en ocho; 14 = de hoy en quince;
0 = hoy; -1 = ayer; -2 = anteayer; 2 = pasado mañana
""",
        "period": """
week -1 = la semana pasada; week 1 = la próxima semana; month -1 = el mes pasado; month 1 = el próximo mes;
year -1 = el año pasado; year 1 = el próximo año
""",
        "unit": "day = día|días; week = semana|semanas; month = mes|meses; year = año|años",
        "number": """
0 = cero; 1 = un|una|uno; 2 = dos; 3 = tres; 4 = cuatro; 5 = cinco; 6 = seis; 7 = siete; 8 = ocho; 9 = nueve;
10 = diez
""",
        "distance_lead": "-1 = hace; 1 = en|dentro de",
        "numeral": """
0 = cero; 0.5 = medio|media; 1 = uno; 2 = dos; 3 = tres; 4 = cuatro; 5 = cinco; 6 = seis; 7 = siete; 8 = ocho;
9 = nueve; 10 = diez; 11 = once; 12 = doce|docena; 13 = trece; 14 = catorce; 15 = quince; 16 = dieciséis;
17 = diecisiete;
18 = dieciocho; 19 = diecinueve; 20 = veinte; 21 = veintiuno|veintiún; 22 = veintidós; 23 = veintitrés;
24 = veinticuatro;
25 = veinticinco; 26 = veintiséis; 27 = veintisiete; 28 = veintiocho; 29 = veintinueve; 30 = treinta; 40 = cuarenta;
50 = cincuenta; 60 = sesenta; 70 = setenta; 80 = ochenta; 90 = noventa; 100 = cien|ciento; 200 = doscientos;
300 = trescientos;
500 = quinientos; 1000 = mil; 1000000 = millón|millones
""",
        "numeral_join": "0 = y",
        "numeral_article": "1 = un|una",
        "measure": """
time 1 = segundo|segundos; time 60 = minuto|minutos; time 3600 = hora|horas; time 86400 = día|días;
time 604800 = semana|semanas; time 1296000 = quincena; time 2592000 = mes|meses; time 7776000 = trimestre|trimestres;
time 31536000 = año|años; EUR 1 = euro|euros; share 1 = por ciento
""",
    },
    phrases={
        "next_weekday_behind": "que viene|próximo",
        "next_weekday": "próximo",
        "at_present": "hoy|esta (?:mañana|tarde|noche|semana|vez)|ahora mismo|de momento|primero",
        "open_question": r"qué|cuál(?:es)?|qui[eé]n(?:es)?|dónde|cuándo|cuánt[oa]s?|cómo se llama\w*",
        "question_context": "él|ellas?|ellos|sus?|eso|esto|ambos|ambas|(?:los|las) dos|también|así",
        "evasion": r"""
no (?:lo )?(?:sé|se)|ni idea|depende|ya veremos|ya te|te (?:lo )?(?:digo|diré|aviso)|pregúnta\w*|luego
  |más tarde|(?:todavía|aún) no|quizás?|tal vez|buena pregunta
(?:me )?da igual|lo (?:miro|consulto)|espera|un (?:momento|segundo)|como quieras|elige tú
""",
        "asked_action": r"""
¿?(?:debo|debemos|tengo que|tenemos que|hay que|debería(?:mos)?) (?P<action>[^?]{3,100}?)\?
""",
        "lead_in": r"""
(?:nota|anotado|recordatorio|importante|a tener en cuenta):|además, |se (?:dijo|anotó|decidió|acordó) que
""",
        "omitted": r"""
(?:y )?(?:otras )?\w+ (?:líneas|filas|páginas) más\b
[\w ]{0,20}(?:omitido|truncado|recortado)s?\b
""",
        "recurring": "cumpleaños|aniversario|santo|cada año|todos los años",
        "no_date": "hoy en día|hoy por hoy",
        "month_begin": r"(?:principios|comienzos|inicios) de",
        "month_end": r"(?:finales|fines) de",
        "asked_subject": r"""
¿?(?:cuál|cual|quién|cuándo|dónde|cuánto) (?:es|son|está|están)
  (?P<subject> (?:el|la|los|las|nuestro|nuestra) [^?,;:]{2,60}?)\?
""",
        "pronoun_subject": r"(?:él|ella|ellos|ellas|eso|esto)\b",
        "problem": r"""
error|no (?:funciona|va|arranca|sale|deja)|falla|roto|bloqueado|se cuelga|sigue sin
""",
        "machine_address": r"""
(?:nota|mensaje|instrucci[oó]n(?:es)?|aviso|atenci[oó]n) (?:al?|para) (?:el |la |los |las |todo |cualquier )?(?:ia\b
  |asistentes?|agentes?|bots?|modelos?|ayudantes?)
(?:si|cuando) (?:una?|el|la|alg[uú]n) (?:ia\b|asistente|agente|bot)\w* (?:lee|procesa|resume|lea)
(?:asistentes?|agentes?|sistemas?) (?:de ia|digital(?:es)?|virtual(?:es)?|autom[aá]ticos?)\b[^.:]{0,60}(?::|deben|debe)
a los (?:sistemas|asistentes|agentes) que\b
""",
        "valid_from": "a partir de(?:l)?",
        "valid_since": "desde",
        "valid_until": "hasta",
        "past_state": "era|eran|estaba|fue|tenía",
        "ended_lead": r"""
dejamos|hemos dejado|se acabó|en (?:lugar|vez) de(?!\s+\w+[aei]r\b)
""",
        "limit": "como mucho|como máximo|máximo|hasta|no más de|menos de|límite|tope|techo|presupuesto",
        "ended_tail": r"""
(?:(?:es|son|era|eran) )?(?:demasiado|muy) (?:poco|pocos|cort\w+|larg\w+|pequeñ\w+|grandes?|tarde|pronto|alto|bajo)
  |se queda cort\w+
""",
        "change_cue": r"""
ahora|ya no|en (?:vez|lugar) de|a partir de|desde|cambi\w+|pas(?:a|ó|amos|ado) (?:a|de)|mud\w+|sub(?:e|ió|ido) (?:a|de)
  |baj(?:a|ó|ado) (?:a|de)
reemplaz\w+|sustitu\w+|retras\w+|aplaz\w+|adelant\w+|dej(?:ó|amos|ado|a) de|al final|nuev\w+|por fin|vuelve
""",
        "ordinal_suffix": r"\s+de",
        "year_of": "de|del",
        "month_of": "de",
        "year_lead": "desde",
        "weekday_lead": "el",
        "day_time": r"por\s+la\s+(?:mañana|tarde|noche)",
        "name_particle": "y",
        "greeting": "hola|buenas",
        "greeting_all": "a todos",
        "name_opening": "me llamo|mi nombre es|ll[aá]mame",
        "name_opening_unsure": "(?:yo )?soy",
        "after_name": "y",
        "person_lead": r"""
(?:mi|nuestr[ao]|su|tu) (?:[\w-]+ ){0,2}(?:mujer|esposa|marido|esposo|pareja|hij[ao]|herman[ao]|madre|padre|mamá|papá
 |tí[ao]|prim[ao]|sobrin[ao]|abuel[ao]|amig[ao]|vecin[ao]|compañer[ao]|jef[ea]|médic[ao]|doctora?|dentista|profesora?)
(?:señora?|don|doña|sra?\.)
""",
        "person_tail": r"""
(?:dijo|dice|prefiere|quiere|quería|piensa|vive|trabaja (?:en|para|de|como)|es alérgic[ao]|cumple)
""",
        "project_lead": "(?:el |nuestro |del )?(?:proyecto|repositorio)",
        "acknowledgement": r"""
gracias|muchas gracias|mil gracias|vale|de acuerdo|entendido|está bien|sí|si|bien|muy bien|perfecto gracias
claro|listo
""",
        "daily": "todos los días|cada día",
        "silent": "trabaja como|en este momento",
        "negation": "nunca|jamás|sin|no",
        "comparison": r"\bmás que\b|\ben lugar de\b",
        "claim_negation": "nunca|jamás|sin",
        "instead_of": "en lugar de",
        "home_verb": "vive",
        "home_place": "a",
        "work_word": r"trabaj\w*|proyecto\w*|empresa\w*|equipo\w*",
        "we": r"nuestr\w+|nosotros",
        "order_word": "siempre|nunca",
        "password_name": "contraseña",
        "purpose_lead": "de|del|para",
        "secret_copula": "es",
        "card_word": "tarjeta",
        "yes_or_no": "sí",
        "own_subject": r"nuestr\w+",
        "points_back": "eso|esto|porque|(?:hasta|desde) entonces|(?:antes|después) de eso",
        "rule": "nunca|siempre",
        "agreement": "sí|ya está|era eso|perfecto|funciona|resuelto|arreglado|exacto|vale",
        "introduction": "soy",
        "choice_or": "o",
        "question_tag": "verdad",
        "ask_number": r"\bcuánt[oa]s?\b",
        "ask_time": r"\bcuándo\b",
        "ask_place": r"\bdónde\b",
        "ask_person": r"\bquién\b",
        "ask_one_time": "cuánto tiempo|primer[oa]?|últim[oa]",
        "time_article": "el|del",
        "before": "antes|hasta",
        "after": "después|desde",
        "month_lead": "antes de|desde|después de|a",
        "name_join": "y|o",
        "polite_opening": "por favor|y",
        "question_word": "qui[eé]n|qu[eé]|cu[aá]l(?:es)?|cu[aá]ndo|d[oó]nde|c[oó]mo|cu[aá]nt[oa]s?",
        "question_opening": "qui[eé]n|qué|cuál(?:es)?|cuándo|dónde|cómo|cuánt[oa]s?",
        "memory_request": r"""
(?:dime|dinos|dígame|muéstra(?:me|nos)|enséña(?:me|nos)|recuérda(?:me|nos)|explíca(?:me|nos)|dame)\b(?!\s+que\b)
lista\s+(?:los|las|todos|todas|mis|nuestr[oa]s)\b
""",
        "remember_verb": "recuérdalo|no olvides",
        "remember_that": "que",
        "remember_of": "de",
        "remember_clause_verb": "recuerda|anota|ten en cuenta",
        "remember_self": "de",
        "remember_clause_that": "que",
        "strong_secret_name": "contraseñas?",
        "medium_secret_name": r"""
(?<!palabra )(?<!palabras )claves?(?: (?:api|secreta|privada|de (?:la )?(?:api|acceso)))?
""",
        "secret_name_hint": "ña(?<=aseña)|ÑA(?<=ASEÑA)",
        "secret_name_ascii": "clave",
        "secret_is": "es|era",
        "secret_is_foreign": "será",
        "secret_is_now": "ahora",
        "secret_purpose": "para",
        "user_and": "y",
        "secret_lead": "con|la",
        "secret_article": "el",
        "secret_column": "contraseña",
        "seed_phrase_end": "frase|Frase|FRASE",
        "seed_phrase_more": "semilla|de recuperaci[oó]n",
        "seed_phrase_name": "frase (?:semilla|de recuperaci[oó]n)",
        "seed_phrase_is": "es",
        "pin_is": "es",
        "pin_unit": "d[ií]gito",
        "pin_of": "mi",
        "login_name": "credenciales",
        "pin_hint": "pin es ",
    },
    cues={
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
como (?:siempre|la última vez|de costumbre)|otra vez demasiado \w+
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
    },
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
    mentioned=(
        r"\b(?:si|dice|dijo|dicen|dice que|pone|aparece|muestra|mensaje|error|botón|palabra|frase|texto|título|él"
        r"|ella|ellos|cliente|jefe|jefa|compañero|quizás|quizá|tal vez|alguien|traduce)\b"
    ),
)
