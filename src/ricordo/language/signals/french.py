"""French signal phrases."""

from ricordo.language.signals.types import SignalPack

__all__ = ["SIGNAL_PACK"]

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
