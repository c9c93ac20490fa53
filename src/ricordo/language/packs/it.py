"""Italian."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACK"]


PACK = LanguagePack(
    code="it",
    name="Italian",
    letters="éàçùìò",
    words={
        "passing_word": """
oggi adesso ora ieri domani mattina pomeriggio sera stasera già ancora quasi finalmente presto dopo settimana
caffè stanco stanca appena
""",
        "lasting_word": """
sempre mai ogni ovunque solo soltanto deve bisogna tutti tutte tutto nessuno normalmente fino dal da
altrimenti salvo default per resta niente più
""",
        "hearsay_word": """
dice disse dicono pensa crede giura racconta pare sembra sentito scritto vorrebbe potrebbe sarebbe forse
magari se
""",
        "role_word": """
è sono ha gestisce dirige fa segue lavora abita vive chiama appartiene usa usiamo costa responsabile nostro
nostra va allergico allergica celiaca
""",
        "stop": """
il lo la i gli le l un uno una del dello della dei degli delle al allo alla ai agli alle dal dalla dai nel nello
nella nei nelle sul sulla sui col questo questa questi queste quello quella quelli quelle ciò io me mi tu te ti lui
lei egli ella esso noi ci voi vi loro si ne mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri
nostre vostro vostra che chi cui quale quali quando dove come perché sono sei è siamo siete era erano essere stato
stata ho hai ha abbiamo avete hanno aveva avevano avere vado va vanno può possono devo deve e ed o ma se però anche
mentre quindi a ad di da in con su per tra fra non no sì già molto più meno tanto tutto tutta tutti tutte qui qua lì
là ora adesso allora grazie
""",
        "function": """
il lo la gli le e è sono io tu noi voi non un una in per con di del della al alla che mio mia nostro nostra sempre
mai ma o se questo questa no sì grazie ho ha abbiamo anche solo più adesso dei delle nel nella preferisco uso usiamo
dal dalla voglio lavoro abito
""",
        "determiner": "il lo la gli le del della dello dei delle nel nella al alla nostro nostra ogni",
        "generic": """
usare utilizzare chiamare cosa tipo genere modo tempo fare avere andare prendere dire sapere
""",
        "abbreviation": "dott sig sig.ra pag art",
        "abbreviation_inside": "dott",
        "origin": "tedesco tedesca inglese francese spagnolo spagnola",
        "ending": "azioni azione ando endo iamo avano are ere ire ato ata ito ita ano ono hi he a e i o",
        "light": "utente molto attualmente",
        "wish": "vuole spera",
        "join": "e o",
        "before_name": "da di con a in",
        "name_part": "da di del della",
        "denial_word": "mai non senza",
        "dummy_secret": """
obbligatorio obbligatoria richiesto richiesta facoltativo facoltativa errata errato scaduta scaduto vuota opzionale
""",
        "not_passphrase": """
alla anche che come con cui dalla dei del della delle deve gli nel nella non parola parole per più può quattro
quella sono sua tutte una
""",
    },
    tables={
        "bound_period": """
week 1 = prossima settimana|settimana prossima; month 1 = prossimo mese|mese prossimo
year 1 = prossimo anno|anno prossimo
""",
        "choice_place": "1 = il primo|la prima|primo|prima; 2 = il secondo|la seconda|secondo|seconda",
        "factor": "2 = il doppio|raddoppia|raddoppialo; 0.5 = la metà|metà|dimezzalo",
        "weekday": """
0 = lunedì; 1 = martedì; 2 = mercoledì; 3 = giovedì; 4 = venerdì; 5 = sabato; 6 = domenica
""",
        "month": """
1 = gennaio; 2 = febbraio; 3 = marzo; 4 = aprile; 5 = maggio; 6 = giugno; 7 = luglio; 8 = agosto; 9 = settembre;
10 = ottobre; 11 = novembre; 12 = dicembre
""",
        "day": "7 = oggi a otto; 14 = oggi a quindici; 0 = oggi; -1 = ieri; 1 = domani; 2 = dopodomani",
        "period": """
week -1 = la settimana scorsa; week 1 = la prossima settimana; month -1 = il mese scorso;
month 1 = il prossimo mese; year -1 = l'anno scorso; year 1 = l'anno prossimo
""",
        "unit": "day = giorno|giorni; week = settimana|settimane; month = mese|mesi; year = anno|anni",
        "number": """
0 = zero; 1 = un|una; 2 = due; 3 = tre; 4 = quattro; 5 = cinque; 6 = sei; 7 = sette; 8 = otto; 9 = nove;
10 = dieci
""",
        "distance_lead": "1 = fra|tra",
        "numeral": """
0 = zero; 0.5 = mezzo|mezza; 1 = uno; 2 = due; 3 = tre|tré; 4 = quattro; 5 = cinque; 6 = sei; 7 = sette; 8 = otto;
9 = nove; 10 = dieci; 11 = undici; 12 = dodici|dozzina; 13 = tredici; 14 = quattordici; 15 = quindici; 16 = sedici;
17 = diciassette; 18 = diciotto; 19 = diciannove; 20 = venti; 21 = ventuno; 28 = ventotto; 30 = trenta;
38 = trentotto;
40 = quaranta; 48 = quarantotto; 50 = cinquanta; 60 = sessanta; 70 = settanta; 80 = ottanta; 90 = novanta;
100 = cento;
1000 = mille|mila; 1000000 = milione|milioni
""",
        "numeral_join": "0 = e",
        "numeral_article": "1 = un|una|un'",
        "measure": """
time 1 = secondo|secondi; time 60 = minuto|minuti; time 3600 = ora|ore; time 86400 = giorno|giorni;
time 604800 = settimana|settimane; time 2592000 = mese|mesi; time 7776000 = trimestre|trimestri;
time 31536000 = anno|anni;
EUR 1 = euro; share 1 = per cento
""",
    },
    phrases={
        "next_weekday_behind": "prossim[ao]",
        "next_weekday": "prossim[ao]",
        "at_present": "oggi|stamattina|stasera|questa (?:settimana|volta)|in questo momento|per prim[oa]",
        "open_question": r"""
quale|quali|qual|chi|dove|quando|quant[oaie]|(?:che )?cosa|come si chiama\w*|che (?:ora|ore|numero|giorno
  |taglia|tipo|anno|versione|lingua|formato|colore|nome|età|misura)
""",
        "question_context": "lui|lei|loro|suo[ia]?|sua|sue|questo|quello|entrambi|tutti e due|anche|così",
        "evasion": r"""
non (?:lo )?so|boh|nessuna idea|dipende|(?:poi )?vediamo|ti (?:dico|faccio sapere)|chiedi\w* a|dopo
  |più tardi|non ancora|forse|bella domanda|(?:è )?uguale|aspetta|un (?:attimo|momento)|come vuoi|scegli tu
  |devo (?:chiedere|guardare|vedere)
""",
        "asked_action": r"(?:devo|dobbiamo|bisogna|dovrei|dovremmo) (?P<action>[^?]{3,100}?)\?",
        "lead_in": r"""
(?:nota|annotato|promemoria|importante|da ricordare):|inoltre, |è stato (?:detto|annotato|deciso|concordato) che
""",
        "omitted": r"(?:e )?altre \w+ (?:righe|voci|pagine)\b|[\w ]{0,20}(?:troncato|omesso|tagliato)\b",
        "recurring": "compleanno|anniversario|onomastico|ogni anno|tutti gli anni",
        "no_date": r"dall['’]oggi al domani|al giorno d['’]oggi|oggi come oggi|oggi giorno",
        "month_begin": r"(?:inizio|inizi)(?: di)?",
        "month_end": r"fine(?: di)?",
        "asked_subject": r"""
(?:qual è|quali sono|chi è|quand['’]è|quando è|dov['’]è|dove sono|quanto è)
  (?P<subject> (?:il |lo |la |i |gli |le |l['’])[^?,;:]{2,60}?)\?
""",
        "pronoun_subject": r"(?:lui|lei|loro|ciò|quest[oa] (?:è|era)|quell[oa] (?:è|era))\b",
        "contradiction": "no|sbagliato|ancora niente",
        "agreement": "sì|perfetto|era quello|funziona|risolto|esatto|ecco",
        "problem": r"""
errore|non (?:funziona|va|parte|stampa|esce|lascia)|rotto|bloccato|si blocca|ancora niente
""",
        "machine_address": r"""
(?:nota|messaggio|istruzion[ei]|avviso|attenzione) (?:per|a|ai|agli|all[’']|al) ?(?:l[’']|gli |i |ogni )?(?:ia\b|ai\b
  |assistent[ei]|agent[ei]|bot|modell[oi]|aiutant[ei])
(?:se|quando) (?:un[’' ]?|l[’'])(?:ia\b|ai\b|assistente|agente|bot) ?(?:legge|elabora|riassume)
(?:assistenti?|agenti?|sistemi?) (?:ia|ai|digital[ei]|virtual[ei]|automatic[io])\b[^.:]{0,60}(?::|devono|deve)
(?:ai|agli) (?:sistemi|assistenti|agenti) che\b
""",
        "valid_from": "a partire da(?:ll['’]|lla|l)?|da(?:ll['’]|lla|l)?",
        "valid_since": "(?:sin|fin) (?:da|dal|dalla)",
        "valid_until": "fino (?:a|al|alla|ad)",
        "past_state": "era|erano|aveva",
        "ended_lead": r"""
basta con|lasciato|(?:invece|al posto) di(?!\s+\w+[aei]re\b)
""",
        "limit": "al massimo|massimo|fino a|non più di|meno di|tetto|limite|budget",
        "ended_tail": r"""
(?:(?:è|sono|era|erano) )?tropp\w (?:poc\w+|cort\w+|lung\w+|piccol\w+|grand\w+|tardi|presto|alt\w|bass\w)|(?:è|sono
  |era|erano) tropp[oaie]
""",
        "change_cue": r"""
adesso|ora|ormai|non .{1,30} più|invece|al posto di|da (?:oggi|domani|lunedì|gennaio|febbraio|marzo|aprile|ora)
  |a partire|dal(?:l')?
cambi\w+|pass(?:a|ato|iamo) (?:a|da)|spost\w+|trasferi\w+|aument\w+|abbass\w+|ridott\w+|sostitui\w+|rimanda\w+
  |rinvia\w+|anticip\w+
smess\w+|sal(?:e|ito|ita) a|nuov\w+|alla fine|torna\w*
""",
        "ago": "fa",
        "year_lead": "nel",
        "weekday_lead": "il",
        "day_time": "mattina|pomeriggio|sera|notte",
        "name_particle": "da|di|del|della",
        "given_name_particle": "da|di|del|della",
        "greeting": "ciao|buongiorno",
        "name_opening": "mi chiamo|il mio nome è|chiamami",
        "name_opening_unsure": "(?:io )?sono",
        "after_name": "e",
        "person_lead": r"""
(?:(?:la |il )?(?:mia|mio|nostr[ao]|sua|suo)) (?:[\w-]+ ){0,2}(?:moglie|marito|compagn[ao]|figli[ao]|sorella|fratello
 |madre|padre|mamma|papà|zi[ao]|cugin[ao]|nipote|nonn[ao]|amic[ao]|vicin[ao]|collega|cap[ao]|dottoressa|dottore
 |medico|dentista|professoressa)
(?:signora?|sig\.(?:ra)?)
""",
        "person_tail": r"""
(?:ha detto|dice|preferisce|vuole|voleva|pensa|abita|vive|lavora (?:in|per|da|come)|è allergic[ao]|compie)
""",
        "project_lead": "(?:il |nostro |del )?(?:progetto|repository)",
        "acknowledgement": r"""
grazie|grazie mille|va bene|ho capito|capito|d'accordo|sì|bene|molto bene|ricevuto|perfetto grazie|chiaro
""",
        "silent": "lavora come",
        "negation": "senza|mai|non",
        "claim_negation": "senza",
        "work_word": r"lavor\w*|progett\w*|aziend\w*",
        "we": "noi",
        "purpose_lead": "per",
        "secret_copula": "è",
        "card_word": "carta",
        "yes_or_no": "sì",
        "points_back": "questo|fino ad allora|da allora|(?:prima|dopo) di (?:questo|ciò)",
        "question_tag": "vero",
        "ask_number": r"\bquant[ieo]s?\b",
        "ask_time": r"\bquando\b",
        "ask_place": r"\bdove\b",
        "ask_person": r"\bchi\b",
        "ask_one_time": "quanto tempo|prim[oa]|ultim[oa]",
        "time_article": "il|di|da",
        "before": "prima|fino a",
        "after": "dopo|dal",
        "month_lead": "prima di|dopo|da",
        "name_join": "e",
        "polite_opening": "per favore|e",
        "question_word": "chi|che cosa|cosa|dove|quando|perch[eé]|come|quale|quali|quanto",
        "question_opening": "chi|dove|quando|perch[eé]|come|quale|quali|quanto",
        "memory_request": r"""
(?:dimmi|dicci|mostrami|mostraci|elenca|elencami|ricordami|spiegami|dammi|fammi (?:sapere|vedere))\b(?!\s+(?:di
  |che)\s+\w+[aei]re\b)
lista\s+(?:i|le|gli|tutti|tutte)\b
""",
        "remember_verb": "ricordati|non dimenticare",
        "remember_that": "che",
        "remember_of": "di",
        "remember_clause_verb": "ricorda|annota|tieni a mente",
        "remember_clause_that": "che",
        "strong_secret_name": "parola(?: d['’]ordine)?",
        "medium_secret_name": "chiave (?:api|segreta|privata|di accesso)",
        "secret_name_ascii": "parola|chiave",
        "secret_is": "era|è",
        "secret_is_foreign": "sarà",
        "secret_is_now": "adesso",
        "secret_purpose": "dell[aeo]?|dell['’]|di|da|per",
        "user_name": "utente",
        "user_and": "e",
        "seed_phrase_more": "seme",
        "seed_phrase_name": "frase seme",
        "seed_phrase_is": "è",
        "pin_is": "è",
        "pin_unit": "cifr",
    },
    cues={
        "greeting": r"""
^(?:ciao|salve|buongiorno|buonasera|come (?:stai|va|sta))
""",
        "farewell": r"""
^(?:arrivederci|a (?:presto|domani|dopo)|ci vediamo|buonanotte|buona (?:giornata|serata))
""",
        "thanks": r"""
^(?:grazie|ti ringrazio|mille grazie|molte grazie)
""",
        "acknowledgement": r"""
^(?:sì|si|no|ok(?:ay)?|va bene|certo|d'accordo|perfetto|capito|esatto|bene|ottimo|prego|giusto)[\s.!,]*$
""",
        "praise": r"""
^(?:bravo|brava|complimenti|congratulazioni|fantastico|ottimo|che (?:bello|bella|figo)|wow|(?:è
  |sembra) (?:molto )?(?:bello|fantastico|interessante|ottimo))
""",
        "wish": r"""
^(?:buona fortuna|in bocca al lupo|spero che (?:tu|ti|vada))
""",
        "listener": r"""
(?:tu|ti|te|tuo|tua|tuoi|tue|voi|vi|vostro)
""",
        "offer": r"""
^(?:fammi sapere|posso (?:\w+ )?(?:aiutar|controllare|mostrar)|vado a|vuoi che|ecco)
""",
        "question": r"""
^(?:che|chi|quando|dove|perché|come|quale|quali|puoi|potresti|hai)\b[^.!]{0,200}\?
\?["')\s]*$
""",
        "request": r"""
^(?:puoi|potresti|può|potrebbe)
^(?:per favore,? )?(?:mostra|spiega|scrivi|correggi|aggiungi|crea|elimina|esegui|controlla|traduci|cerca|trova
  |aiuta)(?:mi)?
""",
        "remember": r"""
^(?:ricorda|ricordati|ricordatevi|tieni presente|non dimenticare|annota|prendi nota|importante|nota)
(?:d'ora in poi|da ora in poi|in futuro|da adesso)
""",
        "decision": r"""
(?:abbiamo|ho|si è) (?:\w+ )?(?:deciso|scelto|concordato|optato|stabilito)
(?:restiamo (?:su|con)|useremo|usiamo d'ora|passiamo a|adottiamo)
(?:decisione|scelta):
(?:passati|passato|migrati|migrato|cambiato) da .{1,60} a
""",
        "preference": r"""
come (?:sempre|al solito|l['’]ultima volta)|di nuovo troppo \w+
(?:preferisco|mi piace|mi piacciono|amo|adoro|odio|detesto|non mi piace|non mi piacciono|non mangio)
(?:il mio|la mia|i miei|le mie|il nostro) (?:\w+ ){0,3}(?:preferit[oaie]|favorit[oaie])
sono (?:\w+ )?(?:vegetarian[oa]|vegan[oa]|allergic[oa]|appassionat[oa])
^(?:per favore,? )?(?:rispondi|rispondimi|scrivimi) (?:sempre |in|brevemente)
""",
        "convention": r"""
(?:d'ora in poi|da ora in poi)
(?:usa|usiamo|usate|utilizza|preferisci) .{1,60}, (?:non|mai|e non) \S
(?:si chiamano|si scrivono)\b
(?:sempre|mai|soltanto|solamente|esclusivamente)
(?:bisogna|non bisogna|si deve|dobbiamo|deve|devono)\b
^(?:per favore,? )?(?:usa|usate|utilizza|non usare|evita)\b
solo (?:\w+ ){0,3}(?:da|con|in|dal|dalla)
(?:è|sono) (?:vietat[oaie]|obbligatori[oae]?)
(?:regola|convenzione)(?: \w+){0,3}(?: è|:)
""",
        "lesson": r"""
(?:ho|abbiamo) (?:\w+ )?(?:imparato|scoperto|capito)
(?:si è scoperto|è venuto fuori|salta fuori)
(?:il problema|la causa|l'errore|la soluzione|il motivo)(?: \w+){0,4} (?:era|è|stava|veniva)
(?:la prossima volta)
""",
        "goal": r"""
(?:voglio|vogliamo|vorrei|vorremmo|ho intenzione|abbiamo intenzione|spero|penso di|pensiamo di|sto pianificando)\b
(?:il mio|il nostro|l')(?: )?(?:obiettivo|sogno|piano|scadenza)(?: \w+){0,2} (?:è|:)
""",
        "correction": r"""
^(?:no|aspetta|scusa)[,.! ]+(?:in realtà|è|io|non|usa|anzi|il|la|gli|volevo)
^(?:in realtà|correzione|anzi)
(?:questo|quello|ciò)? ?(?:è|era) (?:sbagliato|errato|un errore|falso)
non è (?:corretto|vero|così|giusto)
volevo dire
non .{1,60},? (?:ma|bensì)
non .{1,40} più
(?:invece d|al posto d)
(?:passati|passato|migrati|migrato|cambiato) da .{1,60} a
""",
        "fact": r"""
(?:mi chiamo|il mio nome è|vivo (?:a|in)|abito|lavoro (?:a|in|come|per|da)|sono (?:di|un|una|il|la)|ho (?:un|una
  |due|tre) )
(?:si trova|si trovano|si chiama|dipende da|richiede|gira su|appartiene)
""",
        "hypothetical": r"""
^(?:se|forse|magari|immagina)
(?:forse|magari|potrebbe|non sono sicur[oa])
""",
        "self": r"""
(?:io|mi|me|mio|mia|miei|mie|noi|ci|nostro|nostra|nostri|nostre|sono|ho|abbiamo|siamo|vivo|lavoro)
""",
        "denial": r"""
^no[,.! ]+non (?!.{0,60}\b(?:ma|bensì)\b)[^,;:]{1,40}$
""",
        "moment": r"""
^(?:guarda|metti|prendi|prova|apri|leggi) (?:questo|questa|quello|ciò|qui)\b
""",
    },
    signals={
        "correction": r"""
^(?:no|aspetta|scusa|macché|un attimo)[,.! ]{1,3}(?:è|non|hai|intendevo|volevo|parlavo|usa|metti|noi|il|la|quello
  |questo|così|ti|mi|piuttosto|invece)(?!\w)
(?:^|, )(?:questo |quello |così )?è (?:ancora |del tutto )?(?:sbagliat[oa]|errat[oa]|scorrett[oa]|falso)
(?:non è|non era) (?:corretto|giusto|esatto|vero|quello che|così|ciò che)
(?:hai|mi hai|avete) (?:capito male|frainteso|sbagliato|confuso|letto male)
ti (?:sei sbagliat[oa]|sbagli|sei confus[oa])
(?:intendevo|volevo dire|mi riferivo a) \S
^(?:in realtà|correzione|rettifico)\b
^(?:riprova|prova di nuovo|rifallo|rifai|ricomincia)\b
non .{1,40},? (?:ma|bensì) (?!non)\S
^(?:usa|metti|prendi) .{1,40}(?:invece|al posto|e non|, non)\b
^(?:aspetta|un momento|attenzione|scusa)[,.! ]{1,3}(?:que[li]\w{1,4}|i|gli|le|il|la|tu|io)\b
^.{1,60}, non (?:di|è|il|la|i|gli|le|in|del|della) \S{1,30}[.! ]*$
^(?:falso|sbagliato|errato)[,.!:] \S
hai (?:fatto un errore|calcolato male)
^(?:no|macché|falso)[,.!:–— ]{1,3}(?:il|la|lo|l'|i|gli|le|nostro|nostra) ?.{1,60}(?<!\w)(?:è|sono|era|ha|sta|vive
  |inizia|finisce)(?!\w)
(?:confondi|stai confondendo|mescoli)\b
""",
        "reinforcement": r"""
^(?:sì[,.! ]{1,3})?(?:perfetto|esatto|esattamente|ottimo|eccellente|benissimo|proprio così)[,!. ]{1,3}(?:continua
  |era|è|grazie|proprio|così|come)
^(?:perfetto|esatto|esattamente|proprio così|eccellente)[.! ]*$
(?:è|era) (?:proprio|esattamente) (?:quello che|ciò che|così|quel che)
(?:continua|vai avanti) così
mi piace (?:come|il modo in cui)
(?:ottimo|bel) lavoro
è (?:perfetto|molto utile|davvero utile|giusto così)
così va (?:benissimo|bene|perfettamente)
^(?:benissimo|bravissimo|mi piace)[,!. ]{1,3}
(?:mantieni|tieni|conserva) (?:questo|quel|lo stesso|la stessa) (?:formato|forma|stile|tono|struttura)
""",
        "preference": r"""
(?:io )?preferisco\b
(?:non )?mi (?:piace|piacciono|piacerebbe di più)(?! (?:come|il modo in cui))\b
(?:odio|detesto|adoro|amo)\b
non (?:sopporto|reggo)\b
(?:il mio|la mia|i miei|le mie) (?:\w{1,20} )?(?:preferit[oaie]|preferenza)
^(?:rispondi|scrivi|usa) sempre\b
^non (?:usare|scrivere|rispondere) mai\b
.{1,40} mi (?:danno|dà|danno molto) fastidio
.{1,40} mi (?:infastidiscono|infastidisce|irritano|irrita)
""",
        "identity": r"""
(?:io )?sono (?:un |una |un'|il |la )?(?!pront[oa]|stanc[oa]|sicur[oa]|in)\w{2,20}(?:ista|iere|iera|ore|rice|ante
  |ente|etto|ologo|ologa|aio|aia|ario|aria|ato|essa|essore|essoressa|medico|cuoco|cuoca|tra|tro|ano|ana|ese|logo
  |loga)\b
(?:sono) (?:un|una) (?:medico|cuoco|cuoca|chef|avvocato|avvocata|maestr[oa])\b
lavoro (?:come|da|in|per|presso|alla|nel|a)\b
(?:il mio|la mia) (?:lavoro|mestiere|professione|nome|ruolo) è
mi chiamo \S
(?:vivo|abito|vengo da|studio|insegno)\b
faccio (?:il|la|l') ?\w{3,20}
(?:gestisco|dirigo|ho) una? (?:piccol[oa] )?(?:bottega|negozio|azienda|officina|studio|panetteria)
sono (?:un |una )?\w{3,20}(?: \w{2,20}){0,3} da (?:\w{2,15} )?anni
""",
        "goal": r"""
(?:il mio|la mia|il nostro|la nostra) (?:\w{1,20} )?(?:obiettivo|meta|sogno|scopo|piano) (?:\S{1,20} ){0,3}è\b
(?:ho intenzione di|conto di|ho in programma di|progetto di|punto a|spero di) \w
voglio (?!sapere|vedere|dire|capire|che|una? (?:lista|tabella|riassunto))(?:\S{1,30} )?\w{2,20}(?:are|ere|ire|armi
  |ermi|irmi)\b
(?:vogliamo|contiamo di|puntiamo a) \w
(?:mi sto preparando|mi sto allenando|sto risparmiando) per
vorrei (?!sapere|vedere|che|capire)\w{2,20}(?:are|ere|ire|armi|ermi|irmi)\b
""",
        "decision": r"""
(?:abbiamo|ho)(?: finalmente| già)? (?:deciso|scelto|optato|stabilito|concordato|selezionato)\b
(?:usiamo|prendiamo|scegliamo|adottiamo|teniamo|passiamo a|andiamo con|restiamo su)\b
(?:useremo|userò|prenderemo|adotteremo|sceglieremo|passeremo a)\b
è deciso
abbiamo (?:infine |alla fine )?(?:optato|puntato)\b
""",
    },
    denied=r"\b(?:non|mai|nessuno|nessuna|neanche|senza|né|neppure)\b",
    mentioned=(
        r"\b(?:se|dice|ha detto|dicono|scrive|scritto|mostra|appare|messaggio|errore|pulsante|bottone|parola|frase"
        r"|testo|titolo|lui|lei|loro|cliente|capo|collega|forse|magari|qualcuno|traduci)\b"
    ),
)
