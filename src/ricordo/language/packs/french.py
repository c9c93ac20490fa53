"""French: cues of speech acts, and signal phrases."""

from ricordo.language.packs import CuePack, SignalPack

__all__ = ["CUE_PACK", "SIGNAL_PACK"]


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


SIGNAL_PACK = SignalPack(
    signals={
        "correction": r"""
^(?:non|attends|pardon|désolée?|stop|mais non)[,.! ]{1,3}(?:c'est|ce n'est|ce n'était|je (?:parlais|voulais|pensais
  |disais|veux)|pas|utilise|prends|on|nous|tu|il (?:faut|fallait)|mets|plutôt)(?:\b|(?='))
(?:c'est|c'était|ta réponse est|le résultat est) (?:encore |complètement |tout simplement )?(?:faux|incorrect|erroné
  |une erreur|inexact)
ce n'(?:est|était) pas (?:ça|correct|juste|exact|bon|vrai|ce que je|ce que j'ai)
(?:tu as|tu m'as|vous avez|vous m'avez) (?:mal (?:compris|lu)|confondu|inversé)
(?:tu t'es|vous vous êtes) (?:trompée?s?|emmêlée?)
je (?:voulais dire|parlais de|pensais à) .{1,60}(?:, pas|et non)\b
^(?:en fait|correction|rectification)\b
^(?:réessaie|essaie encore|recommence|refais)\b
ce n'est pas .{1,40},? (?:mais|c'est)\b
^(?:utilise|prends|mets) (?:plutôt \S{1,40}|.{1,40} (?:à la place|au lieu de|et non|, pas)\b)
^(?:attends|attention|pardon|stop)[,.! ]{1,3}(?:tu|vous|moi|c'|ce|ces|la|le|les)(?!\w)
ce n'est pas (?:le|la) (?:bon|bonne|bons|même)\b
^faux[,.!:] \S
(?:tu te trompes|vous vous trompez|tu as fait une erreur)
^(?:mais )?(?:non|faux)[,.!:–— ]{1,3}(?:la|le|les|l'|notre|nos|mon|ma|il|elle) ?.{1,60}\b(?:est|sont|était|se trouve
  |a|ont|commence|finit)\b
(?:tu|vous) (?:confonds|confondez|mélanges|mélangez)
""",
        "reinforcement": r"""
^(?:oui[,.! ]{1,3})?(?:parfait|exactement|voilà|excellent|impeccable|super|nickel)[,!. ]{1,3}(?:c'est|continue|merci
  |comme|exactement|garde)
^(?:parfait|exactement|impeccable|excellent)[.! ]*$
c'est (?:exactement|tout à fait|précisément|bien) (?:ça|ce que je (?:voulais|cherchais)|ce qu'il me (?:fallait|faut)
  |juste)
c'est (?:parfait|très utile|génial|vraiment utile|super bien)
(?:continue|continuez) (?:comme ça|ainsi|de cette façon|sur cette voie)
(?:j'aime|j'adore) (?:bien )?(?:ta|la) (?:façon|manière) (?:de|dont)
bien joué
c'est pile ce (?:que|qu'il)
^(?:super|génial|top)[,!. ]{1,3}c'est
(?:garde|gardez|conserve|conservez) (?:ce|cette|le même|la même) (?:format|forme|style|ton|structure)
""",
        "preference": r"""
je préfère\b
(?:j'aime|j'adore|je déteste|j'apprécie) (?!(?:ta|la) (?:façon|manière))\S
je n'aime (?:pas|guère)
je ne supporte pas
(?:mon|ma|mes) (?:\w{1,20} )?préférée?s?\b
ma préférence
j'aimerais mieux
^(?:réponds|écris|utilise|explique|parle)(?:-moi)? (?:toujours|systématiquement)
.{1,40} (?:m'agacent?|m'énervent?|me gênent?)\b
""",
        "identity": r"""
je suis (?:une? |le |la )?(?!prête?\b|désolée?|sûre?\b|en|d'accord|fatiguée?|contente?|un peu
  |une? fan)\w{2,20}(?:eur|euse|iste|ier|ière|ien|ienne|ecte|ecteur|rice|ant|ante|ecin|teur|trice|vocat|vocate|aire
  |fesseur|ogue|logue|chef|cuisinier)\b
je travaille (?:comme|chez|pour|dans|à|au|en tant)\b
mon (?:métier|travail|poste|nom|prénom) (?:est|c'est)
je m'appelle \S
(?:j'habite|je vis|je viens de|j'enseigne|j'étudie)\b
je suis (?:boulang|menuisi|polici|plombi|cuisini|coiffeu|pharmaci|enseign|étudi|retrait|dévelop|comptab|journal
  |photograph|musici|sage-femme|agricult)\w{0,10}
je (?:dirige|gère|tiens) (?:une?|la|le)\b
je suis \w{3,20}(?: \w{3,20})? depuis\b
""",
        "goal": r"""
(?:mon|notre) (?:\w{1,20} )?(?:objectif|but|rêve|projet) (?:\S{1,20} ){0,3}est\b
je (?:compte|prévois de|projette de|souhaite) (?!savoir|comprendre|voir)\S
j'ai (?:l'intention|prévu|pour objectif) de
je (?:veux|voudrais) (?!savoir|comprendre|voir|dire|que|un(?:e)? (?:liste|tableau|résumé)
  |juste)(?:\S{1,30} ){0,4}(?:apprendre|devenir|publier|finir|terminer|écrire|créer|courir|obtenir|déménager|lancer
  |ouvrir)
nous (?:voulons|prévoyons de|comptons|visons) \S
je m'entraîne pour
j'aimerais (?!savoir|comprendre|voir|que|mieux)\w{2,20}(?:er|ir|re)\b
""",
        "decision": r"""
(?:nous avons|on a|j'ai)(?: finalement| enfin| donc| tous)? (?:choisi|décidé|opté|retenu|tranché|convenu
  |sélectionné)\b
(?:on va|nous allons|je vais) (?:utiliser|prendre|partir sur|choisir|adopter|passer à|rester sur|garder)\b
(?:utilisons|prenons|partons sur|adoptons|gardons|choisissons)\b
on (?:part sur|prend|garde|reste sur|passe à)\b
c'est (?:décidé|tranché|acté)
on (?:reste|mise|passe) (?:sur|à)\b
^(?:bon|ok|alors|donc)?[, ]{0,2}ce sera \S
""",
    },
    denied=r"(?:\bne\b|\bn'|\bpas\b|\bjamais\b|\baucune?\b|\bpersonne\b|\bsans\b|\bni\b)",
    mentioned=r"(?:\b(?:si|dit|dis que|disait|écrit|affiche|indique|lit|message|erreur|bouton|mot|phrase|texte"
    r"|titre|il|elle|ils"
    r"|elles|client|cliente|collègue|peut-être|quelqu'un|traduis)\b|s'il)",
)
