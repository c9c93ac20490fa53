"""French."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACK"]


PACK = LanguagePack(
    code="fr",
    name="French",
    letters="èêëîïôûœæéàçù",
    words={
        "passing_word": """
aujourd'hui maintenant actuellement hier demain matin midi soir déjà encore presque enfin bientôt tout-
à-l'heure semaine café fatigué fatiguée vient
""",
        "lasting_word": """
toujours jamais chaque partout seulement doit faut tous toutes tout personne généralement jusqu'à jusqu'au
depuis sinon sauf défaut par reste désormais dorénavant plus uniquement
""",
        "hearsay_word": """
dit disait pense croit prétend raconte paraît apparemment entendu écrit trouve voudrait pourrait serait peut-
être si
""",
        "role_word": """
est sont a gère dirige fait s'occupe travaille habite s'appelle appartient utilise coûte responsable notre nos
passe faut allergique
""",
        "stop": """
le la les l un une des du de d au aux ce cet cette ces c'est c cela ça ceci je j me m moi tu te t toi il elle on
nous vous ils elles se s lui leur leurs eux mon ma mes ton ta tes son sa ses notre nos votre vos y en qui que qu
quoi dont où quand comment pourquoi quel quelle quels quelles suis es est sommes êtes sont été être étais était
étaient étant ai as a avons avez ont avais avait avaient avoir eu vais va vont aller peux peut peuvent pouvons dois
doit doivent j'ai et ou mais donc or ni car si lorsque puisque comme parce à dans par pour sur sous avec sans chez
entre vers contre depuis pendant avant après dès ne n pas plus moins très trop aussi bien même tout tous toute
toutes encore déjà ici là alors oui non merci
""",
        "function": """
le la les des et est sont je tu nous vous il elle ne pas un une dans sur pour avec de du au aux que qui mon ma mes
notre nos toujours jamais mais ou si ce cette non oui merci suis ai avons avez j'ai c'est plutôt chez à a on
""",
        "determiner": "le la les notre nos mon ma mes votre vos chaque",
        "generic": """
utiliser appeler nommer chose sorte genre type façon temps faire avoir aller prendre dire savoir
""",
        "abbreviation": "p.ex m mme mlle env av bd",
        "abbreviation_inside": "p.ex mme mlle",
        "origin": """
belge canadien français française suisse allemand allemande anglais anglaise espagnol espagnole italien italienne
""",
        "ending": "issons issent eraient erons eront aient ait ent ees ez er es ee s e",
        "light": "utilisateur utilisatrice tres vraiment actuellement",
        "wish": "veut voudrait espère",
        "count": "zero un deux trois quatre cinq six sept huit neuf dix onze douze",
        "join": "et ou",
        "before_name": "à de chez en avec",
        "name_part": "de du la le",
        "person_word": "je nous tu vous il elle on le la les un une",
        "denial_word": "pas jamais sans ne plus",
        "dummy_secret": """
motdepasse obligatoire requis requise facultatif facultative incorrect incorrecte invalide oublié oubliée expiré
vide inconnu
""",
        "not_passphrase": """
aux avec avoir bien ces cette dans des deux elle est être faire font les leur mais mot mots nous par pas plus pour
qui que quatre sans ses sont sur tous tout très trois une vous votre
""",
    },
    rows={
        "opposites": """
aime adore prefere|deteste hait evite, avant|apres|pendant, plus|moins,
toujours|jamais|parfois rarement, matin|soir|midi|nuit,
lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche, soeur|frere|mere|pere|fils|fille
""",
        "synonyms": """
habite vit, aime adore
""",
    },
    tables={
        "bound_period": """
week 1 = semaine prochaine; month 1 = mois prochain; year 1 = année prochaine|an prochain
""",
        "choice_place": """
1 = le premier|la première|premier|première;
2 = le deuxième|la deuxième|le second|la seconde|deuxième
""",
        "factor": """
2 = double|le double|double-le|deux fois plus;
0.5 = la moitié|moitié moins|deux fois moins
""",
        "weekday": "0 = lundi; 1 = mardi; 2 = mercredi; 3 = jeudi; 4 = vendredi; 5 = samedi; 6 = dimanche",
        "month": """
1 = janvier; 2 = février; 3 = mars; 4 = avril; 5 = mai; 6 = juin; 7 = juillet; 8 = août; 9 = septembre;
10 = octobre; 11 = novembre; 12 = décembre
""",
        "weeks_behind": "1 = en huit; 2 = en quinze",
        "day": "0 = aujourd'hui; -1 = hier; -2 = avant-hier; 1 = demain; 2 = après-demain",
        "period": """
week -1 = la semaine dernière; week 1 = la semaine prochaine; month -1 = le mois dernier;
month 1 = le mois prochain; year -1 = l'année dernière|l'an dernier; year 1 = l'année prochaine
""",
        "unit": "day = jour|jours; week = semaine|semaines; month = mois; year = an|ans",
        "number": """
0 = zéro; 1 = un|une; 2 = deux; 3 = trois; 4 = quatre; 5 = cinq; 6 = six; 7 = sept; 8 = huit; 9 = neuf; 10 = dix
""",
        "distance_lead": "-1 = il y a; 1 = en|dans",
        "numeral": """
0 = zéro; 0.5 = demi|demie; 1 = un|une; 2 = deux; 3 = trois; 4 = quatre; 5 = cinq; 6 = six; 7 = sept; 8 = huit;
9 = neuf; 10 = dix; 11 = onze; 12 = douze|douzaine; 13 = treize; 14 = quatorze; 15 = quinze; 16 = seize; 20 = vingt;
30 = trente; 40 = quarante; 50 = cinquante; 60 = soixante; 80 = quatre-vingt|quatre-vingts; 100 = cent|cents;
1000 = mille;
1000000 = million|millions
""",
        "numeral_join": "0 = et",
        "numeral_article": "1 = un|une",
        "measure": """
time 1 = seconde|secondes; time 60 = minute|minutes; time 3600 = heure|heures; time 86400 = jour|jours;
time 604800 = semaine|semaines; time 2592000 = mois; time 7776000 = trimestre|trimestres;
time 31536000 = an|ans|année|années;
EUR 1 = euro|euros; share 1 = pour cent
""",
    },
    phrases={
        "ordinal_suffix": "er",
        "next_weekday_behind": "prochaine?",
        "at_present": "aujourd['’]hui|ce (?:matin|soir|week-end)|cette (?:semaine|fois)|en ce moment|d['’]abord",
        "open_question": r"quel(?:le)?s?|qui|où|quand|combien|qu['’]est-ce que|que|quoi|comment s['’]appelle\w*",
        "question_context": r"""
elles?|ils|lui|leurs?|ses|ça|cela|(?:les|tous les) deux|assez|aussi|c['’]est (?:bien|toujours)
""",
        "evasion": r"""
je (?:ne )?sais pas|j['’]sais pas|aucune idée|ça dépend|on verra|je te (?:dis|dirai)|je vous dirai
  |demande\w* à|plus tard|pas encore|peut-être|bonne question
peu importe|je (?:vais )?(?:vérifi|regard|demand)\w+|attends|une (?:seconde|minute)|un instant|comme tu veux
""",
        "asked_action": r"""
(?:dois-je|devons-nous|faut-il|doit-on|est-ce que je dois|est-ce qu['’](?:on|il) (?:doit|faut)|(?:je
  |on) dois?t?) (?P<action>[^?]{3,100}?)\s?\?
""",
        "lead_in": r"""
(?:note|noté|rappel|important|à (?:noter|retenir)) ?:
(?:de plus|en outre),
il a été (?:dit|noté|décidé|convenu) (?:que|qu['’])
""",
        "omitted": r"""
(?:et )?(?:encore \w+|\w+ autres) (?:lignes|pages|entrées)\b|\w+ (?:lignes|pages|entrées) (?:de plus|suivantes)\b
[\w ]{0,20}(?:tronqué|coupé|omis)e?s?\b
""",
        "recurring": "anniversaire|chaque année|tous les ans",
        "no_date": r"au jour d['’]aujourd['’]hui",
        "month_begin": r"début(?: de)?",
        "month_end": r"fin(?: de)?",
        "asked_subject": r"""
(?:quel(?:le)?s?|qui|où|quand|combien) (?:est|sont)
  (?P<subject> (?:le |la |les |l['’]|notre |nos )[^?,;:]{2,60}?)\s?\?
""",
        "pronoun_subject": r"(?:il(?! (?:faut|y a)\b)|elle|ils|elles|cela|ça|c['’]est)\b",
        "problem": r"""
erreur|ne (?:marche|fonctionne) pas|marche pas|plante|bloqué|cassé|toujours pas
""",
        "machine_address": r"""
(?:note|message|instructions?|consigne|avis|attention) (?:à|pour|aux?) (?:l'|les |tout |toute )?(?:ia\b|assistants?
  |agents?|robots?|modèles?|assistante?s? (?:numérique|virtuel)\w*)
(?:si|quand) (?:une?|l') ?(?:ia\b|assistant|agent|robot)\w* (?:lit|traite|résume|analyse)
(?:assistants?|agents?|systèmes?) (?:ia|d'ia|numériques?|automatiques?)\b[^.:]{0,60}(?::|doivent|doit|sont priés)
aux (?:ia|assistants|systèmes|agents) qui\b
""",
        "valid_from": "à (?:partir|compter) (?:de|du|d['’])|dès",
        "valid_since": "depuis",
        "valid_until": "jusqu['’](?:à|au|en)",
        "past_state": "était|étaient|avait",
        "ended_lead": r"""
fini(?: avec)?|abandonné|plus d(?:e|['’])|au lieu d(?:e|['’])(?!\s*\w+(?:er|ir|re)\b)|à la place d(?:e|['’])
""",
        "limit": "au plus|au maximum|maximum|jusqu['’]à|pas plus de|moins de|plafond|limite|budget",
        "ended_tail": r"""
(?:(?:c['’]est|est|sont|était|étaient|c['’]était) )?(?:bien |beaucoup )?trop (?:peu|court\w*|long\w*|petit\w*
  |grand\w*|tard|tôt|juste|haut\w*|bas\w*)
""",
        "change_cue": r"""
maintenant|désormais|dorénavant|ne .{1,30} plus|plus (?:de|du|d')|au lieu de|à partir d\w+|dès|depuis|remplac\w+
  |chang\w+
pass(?:é|er|e|ons) (?:à|de)|déplac\w+|déménag\w+|augment\w+|baiss\w+|réduit\w*|report\w+|repouss\w+|renomm\w+
  |finalement|nouveau|nouvelle
""",
        "year_lead": "en|depuis",
        "weekday_lead": "le",
        "day_time": "matin|midi|soir|après-midi",
        "name_particle": "de|du|la|le",
        "given_name_particle": "de|du|la|le",
        "greeting": "bonjour|salut",
        "greeting_all": "à tous",
        "name_opening": "je m['’]appelle|mon nom est|appelle[sz]?-moi",
        "name_opening_unsure": "(?:moi,? )?(?:je suis|c['’]est)",
        "after_name": "et",
        "person_lead": r"""
(?:ma|mon|notre|sa|son|leur) (?:[\w-]+ ){0,2}(?:femme|mari|compagne|compagnon|fils|fille|sœur|soeur|frère|mère|père
 |tante|oncle|cousine?|nièce|neveu|amie?|voisine?|collègue|chef|cheffe|médecin|dentiste|professeure?)
(?:monsieur|madame|mme|m\.)
""",
        "person_tail": r"""
(?:dit|a dit|préfère|pense|veut|voulait|habite|vit|travaille (?:chez|à|pour)|est allergique)
""",
        "project_lead": "(?:le |notre |du )?(?:projet|dépôt)",
        "acknowledgement": r"""
merci|merci beaucoup|d'accord|ça marche|compris|bien reçu|entendu|oui|très bien|parfait merci|c'est noté|super merci
""",
        "daily": "tous les jours",
        "silent": "travaille comme|en ce moment",
        "negation": "pas|jamais|sans|non",
        "comparison": r"\bplutôt que\b",
        "elision": "l|d|j|m|n|s|t|c|qu",
        "claim_negation": "pas|jamais|sans|non",
        "to": "à",
        "instead_of": "au lieu de",
        "home_verb": "vit|habite",
        "home_place": "à|en",
        "work_verb": r"travaille\s+chez",
        "work_word": r"travail\w*|projet\w*|entreprise\w*|équipe\w*|métier",
        "we": "nous|notre",
        "order_word": "toujours|jamais",
        "password_name": "mot de passe",
        "purpose_lead": "pour",
        "secret_copula": "est",
        "card_word": "carte",
        "no_in_reply": "non",
        "yes_or_no": "oui|non",
        "own_subject": "nous|on",
        "no_in_rule": "non",
        "points_back": "cela|c'est|jusque-là|d'ici là|(?:avant|après) (?:ça|cela)",
        "rule": "jamais|toujours",
        "contradiction": "non|faux|toujours pas",
        "agreement": r"""
oui|parfait|c['’]était ça|ça marche|exact|résolu|super
""",
        "introduction": "je suis",
        "next_step": "je|puis-je",
        "choice_or": "ou",
        "no_in_summary": "non",
        "question_tag": "n'est-ce pas",
        "ask_number": r"\bcombien\b",
        "ask_time": r"\bquand\b",
        "ask_place": r"\boù\b",
        "ask_person": r"\bqui\b",
        "ask_one_time": "combien de (?:temps|fois)|premi(?:er|ère)|derni(?:er|ère)",
        "time_article": "le|la|de",
        "before": "avant|jusqu'(?:à|en|au)",
        "after": "après|depuis",
        "month_lead": "en|avant|après|depuis",
        "name_join": "et|ou",
        "polite_opening": "s['’]il (?:te|vous) pla[iî]t|et",
        "question_word": "qui|quoi|quand|où|comment|pourquoi|quel(?:le)?s?|combien|si|qu[ié]",
        "question_opening": "qui|quand|où|comment|pourquoi|quel(?:le)?s?|combien",
        "memory_request": r"""
(?:dis|dites|montre[sz]?|rappelle|rappelez|explique[z]?|donne[z]?|cite[z]?)[-\s](?:moi|nous)\b(?!\s+(?:que|de)\b)
fais[-\s]moi (?:voir|savoir)\b|liste[sz]?(?:[-\s]moi)?\s+(?:les|tous|toutes|mes|nos)\b
""",
        "remember_verb": r"souviens[-\s]toi|souvenez[-\s]vous|n['’]oublie[sz]?\s+pas",
        "remember_that": "que",
        "remember_of": "de",
        "remember_elision": "qu['’]",
        "remember_clause_verb": r"note[sz]?|retiens|retenez|rappelle[-\s]toi",
        "remember_clause_that": "que",
        "strong_secret_name": "mots? de passe",
        "medium_secret_name": "clés? (?:de l['’])?(?:api|secrète|privée|d['’]accès)",
        "secret_name_hint": "é (?:api|API|secr|priv|d.acc|de l)|és (?:api|API|secr|priv|d.acc)",
        "secret_name_ascii": "de passe",
        "secret_is": "est|c['’]est",
        "secret_is_foreign": "sera|était",
        "secret_is_now": "maintenant",
        "secret_purpose": "d['’]|du|pour",
        "user_name": "utilisateur",
        "user_and": "et",
        "secret_lead": "avec|le",
        "secret_article": "le|la",
        "secret_column": "mot de passe",
        "seed_phrase_more": "de récupération|secrète|mnémonique",
        "seed_phrase_name": "phrase (?:de récupération|secrète|mnémonique)",
        "seed_phrase_is": "est",
        "pin_owner": "du",
        "pin_is": "est",
        "pin_unit": "chiffre",
        "pin_of": "mon",
        "login_name": "identifiants",
        "pin_hint": "pin est",
    },
    cues={
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
comme (?:d['’]habitude|toujours|la dernière fois)|encore trop \w+
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
    },
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
    mentioned=(
        r"(?:\b(?:si|dit|dis que|disait|écrit|affiche|indique|lit|message|erreur|bouton|mot|phrase|texte|titre|il"
        r"|elle|ils|elles|client|cliente|collègue|peut-être|quelqu'un|traduis)\b|s'il)"
    ),
)
