"""French cues."""

from ricordo.language.cues.types import CuePack

__all__ = ["CUE_PACK"]

CUE_PACK: CuePack = {
    "greeting": r"""
^(?:bonjour|bonsoir|salut|coucou|ça va|comment (?:ça va|vas-tu|allez-vous))
""",
    "farewell": r"""
^(?:au revoir|à (?:bientôt|plus|demain|tout à l'heure)|bonne (?:journée|soirée|nuit)|ciao)
""",
    "thanks": r"""
^(?:merci|je te remercie|je vous remercie)
""",
    "acknowledgement": r"""
^(?:oui|non|ok(?:ay)?|d'accord|bien sûr|exactement|parfait|très bien|super|ça marche|entendu|compris
  |pas de problème|voilà)[\s.!,]*$
""",
    "praise": r"""
^(?:bravo|félicitations|génial|super|wow|magnifique|excellent|c'est (?:\w+ ){0,2}(?:génial|super|magnifique|beau
  |cool|bien|formidable|intéressant))
""",
    "wish": r"""
^(?:bonne chance|bon courage|j'espère que (?:tu|vous|ça))
""",
    "listener": r"""
(?:tu|te|t'|toi|ton|ta|tes|vous|votre|vos)
""",
    "offer": r"""
^(?:n'hésite|dis-moi|faites-moi|je peux (?:\w+ ){0,2}(?:aider|vérifier|montrer)|je vais (?:\w+ )?(?:vérifier
  |regarder|créer|lire)|voulez-vous|veux-tu|souhaitez-vous|voici)
""",
    "question": r"""
^(?:que|quoi|qui|quand|où|pourquoi|comment|quel\w*|est-ce|peux-tu|pouvez-vous|as-tu|avez-vous)\b[^.!]{0,200}\?
\?["')\s]*$
""",
    "request": r"""
^(?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous)
^(?:montre|explique|écris|corrige|ajoute|crée|supprime|lance|vérifie|traduis|cherche|trouve|aide)(?:-moi|z-moi)?
""",
    "remember": r"""
^(?:souviens-toi|rappelle-toi|retiens|notez|note|n'oublie pas|n'oubliez pas|important|pour info|à noter)
(?:désormais|dorénavant|à partir de maintenant|à l'avenir)
""",
    "decision": r"""
(?:on|nous|j'|je)(?: |n')?(?:a|avons|ai|s'est|nous sommes)?(?: finalement| donc)? (?:décidé|choisi|convenu|opté
  |retenu|tranché|mis d'accord)
(?:j'ai|on a|nous avons) (?:finalement |donc )?(?:décidé|choisi|convenu|opté|retenu|tranché)
(?:on|nous) (?:part(?:ons)? sur|garde|gardons|reste(?:ons)? sur|passe|passons à|adopte|adoptons)
(?:décision|choix) ?:
(?:passés?|migrés?|basculés?) de .{1,60} (?:à|vers)
""",
    "preference": r"""
(?:je|j')(?: )?(?:ne )?(?:préfère|aime|adore|déteste|n'aime|apprécie|mange|bois)
(?:mon|ma|mes|notre) (?:\w+ ){0,3}(?:préférée?s?|favorite?s?)
je suis (?:\w+ )?(?:végétarien|végétarienne|vegan|allergique|fan|passionnée?)
^(?:s'il te plaît,? |s'il vous plaît,? )?(?:réponds|répondez|écris|parle)(?:-moi)? (?:toujours |en|de façon
  |brièvement)
""",
    "convention": r"""
(?:désormais|dorénavant|à partir de maintenant)
(?:s'appellent|se nomment|sont (?:nommée?s|écrite?s|rédigée?s|rangée?s))\b
(?:utilise|utilisez|prends|préfère|écris) .{1,60}, (?:pas|jamais|et non|et pas) \S
(?:toujours|jamais|uniquement|exclusivement|seulement)
(?:il faut|il ne faut pas|on doit|nous devons|doit|doivent|ne doit|ne doivent)\b
^(?:utilise|utilisez|utiliser|n'utilise|n'utilisez)\b
(?:est|sont) (?:interdite?s?|obligatoires?)
(?:règle|convention|norme)(?: \w+){0,3}(?: est| ?:)
""",
    "lesson": r"""
(?:j'ai|on a|nous avons) (?:\w+ ){0,2}(?:appris|découvert|compris|réalisé|constaté)
(?:il s'avère|en fait le problème)
(?:le problème|la cause|l'erreur|la solution|la raison)(?: \w+){0,4} (?:était|est|venait|vient)
(?:la prochaine fois|avec le recul)
""",
    "goal": r"""
(?:je|j'|nous|on)(?: )?(?:veux|voudrais|voulons|aimerais|prévois|prévoyons|compte|comptons|espère|envisage|vais
  |allons)\b
(?:mon|notre|l')(?: )?(?:objectif|but|rêve|projet|échéance)(?: \w+){0,2} (?:est|:)
""",
    "correction": r"""
(?:passe|passons|migre|migrons|bascule|basculons) (?:\S+ ){0,4}?de .{1,60} (?:à|vers) \S
^non[,.! ]+pas \S
^(?:non|attends|attendez|pardon)[,.! ]+(?:en fait|c'est|je|on|nous|pas|plutôt|utilise|il|elle|le|la|les)
^(?:en fait|correction|plutôt)
(?:c'est|c'était) (?:faux|incorrect|une erreur|pas (?:ça|vrai|correct|exact))
je voulais dire
(?:c'est pas|n'est pas|sont pas|non) .{1,60},? mais
(?:ne|n') ?\w+(?: \w+)? plus
(?:au lieu d|plutôt qu)
(?:passés?|migrés?|basculés?|changé) de .{1,60} (?:à|vers)
""",
    "fact": r"""
(?:écoute|tourne) sur\b
(?:je m'appelle|je vis|j'habite|je travaille|je viens d|je suis (?:un|une|de|\w+eur|\w+ien|\w+ienne)|j'ai (?:un|une
  |deux|trois))
(?:se trouve|se trouvent|tourne sur|tournent sur|s'appelle|dépend d|utilise|nécessite|appartient)
""",
    "hypothetical": r"""
^(?:si|peut-être|imagine|supposons)
(?:peut-être|pourrait|éventuellement|pas sûr)
""",
    "self": r"""
(?:je|j'|me|m'|moi|mon|ma|mes|nous|notre|nos|on)
""",
    "denial": r"""
^non[,.! ]+pas (?!.{0,60}\bmais\b)[^,;:]{1,60}$
^(?:non[,.! ]+)?(?:c'est faux|ce n'est pas (?:ça|vrai|correct))[.!]*$
""",
    "moment": r"""
^(?:regarde|mets|prends|essaie|ouvre|lance|garde|lis|teste|jette) (?:ça|cela|ce|cet|cette|ces|un œil)\b
^je (?:dois|vais|reviens) .{0,60}\b(?:maintenant|vite|tout de suite|dans \w+ minutes)\b
""",
    "heading": r"""
^(?:voici )?(?:nos|les|mes|quelques) (?:\w+ )?(?:règles|conventions|consignes)(?: \w+){0,4} ?[.:]$
""",
}
