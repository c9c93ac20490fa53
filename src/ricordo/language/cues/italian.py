"""Italian cues."""

from ricordo.language.cues.types import CuePack

__all__ = ["CUE_PACK"]

CUE_PACK: CuePack = {
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
}
