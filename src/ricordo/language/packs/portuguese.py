"""Portuguese: cues of speech acts, and signal phrases."""

from ricordo.language.packs import CuePack, SignalPack

__all__ = ["CUE_PACK", "SIGNAL_PACK"]


CUE_PACK: CuePack = {
    "greeting": r"""
^(?:olá|oi|bom dia|boa (?:tarde|noite)|tudo bem|como (?:está|vai|estás))
""",
    "farewell": r"""
^(?:tchau|adeus|até (?:logo|amanhã|mais|breve)|boa noite)
""",
    "thanks": r"""
^(?:obrigad[oa]|muito obrigad[oa]|valeu|agradeço)
""",
    "acknowledgement": r"""
^(?:sim|não|ok(?:ay)?|certo|claro|beleza|perfeito|entendi|entendido|exato|tá bom|está bem|de nada|combinado
  |isso)[\s.!,]*$
""",
    "praise": r"""
^(?:parabéns|que (?:bom|legal|lindo|giro|ótimo)|ótimo|incrível|uau|fantástico|(?:isso )?(?:é
  |parece) (?:muito )?(?:legal|ótimo|bom|lindo|interessante|incrível))
""",
    "wish": r"""
^(?:boa sorte|espero que (?:você|tu|esteja))
""",
    "listener": r"""
(?:tu|te|ti|teu|tua|você|vocês)
""",
    "offer": r"""
^(?:me avise|avise-me|posso (?:\w+ )?(?:ajudar|verificar|mostrar)|vou (?:verificar|olhar|criar|ler)|você quer que
  |quer que|aqui está)
""",
    "question": r"""
^(?:o que|que|quem|quando|onde|por que|como|qual|quais|você pode|pode|poderia)\b[^.!]{0,200}\?
\?["')\s]*$
""",
    "request": r"""
^(?:você )?(?:pode|poderia|podes)\b
^(?:por favor,? )?(?:mostre|mostra|explique|explica|escreva|corrija|adicione|crie|remova|execute|verifique|traduza
  |procure|ajude)(?:-me)?
""",
    "remember": r"""
^(?:lembre|lembra|lembre-se|lembra-te|tenha em mente|não (?:se )?esqueça|não esqueças|anote|importante|nota|observe)
(?:a partir de agora|de agora em diante|no futuro|daqui (?:para|em) (?:a )?(?:frente|diante))
""",
    "decision": r"""
(?:decidimos|decidi|escolhemos|escolhi|optamos|optei|combinamos|concordamos|acordamos)
(?:foi|ficou) (?:decidido|combinado|acordado)
(?:vamos (?:usar|ficar com|adotar|migrar|mudar)|ficamos com|usaremos)
(?:decisão|acordo):
(?:mudamos|mudei|migramos|migrei|trocamos|passamos) (?:\w+ )?de .{1,60} para
""",
    "preference": r"""
(?:prefiro|eu gosto|gosto (?:de|muito)|adoro|amo|odeio|detesto|não gosto|não como)
(?:meu|minha|meus|minhas|nosso|nossa) (?:\w+ ){0,3}(?:favorit[oa]s?|preferid[oa]s?)
sou (?:\w+ )?(?:vegetarian[oa]|vegan[oa]|alérgic[oa]|fã|apaixonad[oa])
^(?:por favor,? )?(?:responda|responde|escreva) (?:sempre |em|de forma|brevemente)
""",
    "convention": r"""
(?:a partir de agora|de agora em diante)
(?:use|usamos|usa|utilize|prefira) .{1,60}, (?:não|nunca|e não) \S
(?:se chamam|são nomead[oa]s)\b
(?:sempre|nunca|jamais|somente|apenas|exclusivamente)
(?:é preciso|deve-se|devemos|deve|devem|tem que|têm que|temos que)\b
^(?:por favor,? )?(?:use|usa|usem|utilize|não use|evite)\b
só (?:\w+ ){0,3}(?:de|a partir|com|em|do|da)
(?:é|são|está|estão) (?:proibid[oa]s?|obrigatóri[oa]s?)
(?:regra|convenção|norma)(?: \w+){0,3}(?: é|:)
""",
    "lesson": r"""
(?:aprendi|aprendemos|descobri|descobrimos|percebi|percebemos)
(?:acontece que|no fim das contas|descobriu-se)
(?:o problema|a causa|o erro|a solução|o motivo)(?: \w+){0,4} (?:era|é|foi|estava|vinha)
(?:da próxima vez|na próxima vez)
""",
    "goal": r"""
(?:quero|queremos|gostaria|planejo|planejamos|pretendo|pretendemos|espero|penso em|estou planejando)\b
(?:meu|nosso|o) (?:objetivo|plano|sonho|prazo)(?: \w+){0,2} (?:é|:)
""",
    "correction": r"""
^(?:não|espera|espere|desculpa)[,.!]+ ?(?:na verdade|é|eu|use|o|a|os|quis)
^(?:na verdade|correção|aliás|melhor dizendo)
(?:isso|isto) (?:está|é|era) (?:errado|incorreto|falso|um erro)
não é (?:correto|verdade|isso|assim)
(?:quis|queria) dizer
não .{1,60},? (?:mas sim|e sim|mas)
(?:já não|não .{1,40} mais)
(?:em vez d|ao invés d|no lugar d)
(?:mudamos|mudei|migramos|migrei|trocamos|passamos) (?:\w+ )?de .{1,60} para
""",
    "fact": r"""
(?:me chamo|meu nome é|moro (?:em|no|na)|trabalho (?:na|no|em|como|para)|sou (?:de|um|uma|o|a)|tenho (?:um|uma|dois
  |duas))
(?:fica|ficam|está|estão) (?:\w+ )?(?:em|no|na)
(?:se chama|depende de|requer|roda em|pertence)
""",
    "hypothetical": r"""
^(?:se|talvez|imagine)
(?:talvez|poderia|não tenho certeza)
""",
    "self": r"""
(?:eu|me|mim|meu|minha|meus|minhas|nós|nosso|nossa|nossos|nossas|sou|estou|tenho|moro|trabalho|temos|somos)
""",
    "denial": r"""
^não[,.! ]+não (?!.{0,60}\bmas\b)[^,;:]{1,40}$
""",
    "moment": r"""
^(?:olha|olhe|põe|ponha|pega|pegue|abre|abra|tenta|tente) (?:isso|isto|este|esta|esse|essa)\b
""",
}


SIGNAL_PACK = SignalPack(
    signals={
        "correction": r"""
^(?:não|espera|espere|desculpa|desculpe|peraí|nada disso)[,.! ]{1,3}(?:isso|isto|está|é|não (?:é|era|foi)|eu (?:quis
  |queria|falei|disse)|use|usa|usamos|a gente|o|a|você|tu|sim|coloque)(?!\w)
(?:isso|isto|a resposta|sua resposta|o resultado) (?:está|tá|é|ficou) (?:errad[oa]|incorret[oa]|equivocad[oa]
  |fals[oa])
(?:isso|isto|assim) não (?:está|é|era) (?:certo|correto|verdade|bem assim|o que)
(?:você|tu|vocês)? ?(?:me )?(?:entendeu|entendeste|leu|interpretou) (?:tudo )?(?:errado|mal)
você (?:se enganou|está enganad[oa]|confundiu|trocou)
(?:eu )?(?:quis dizer|queria dizer|me referia a|estava falando d[oae]) \S
^(?:na verdade|na realidade|correção|corrigindo)\b
^(?:tente|tenta) (?:de novo|novamente|outra vez)
^(?:refaça|refaz|faça de novo|faz de novo)\b
não (?:é|era|está) .{1,40},? (?:mas sim|e sim|mas)\b
^(?:use|usa|coloque) .{1,40}(?:em vez de|ao invés de|no lugar de|e não|, não)\b
^(?:espera|espere|calma|opa|um momento)[,.! ]{1,3}(?:ess[ea]s?|est[ea]s?|isso|os|as|o|a|eu|você)\b
^.{1,60}, não (?:de|é|o|a|os|as|em|do|da) \S{1,30}[.! ]*$
^(?:errado|falso)[,.!:] \S
^(?:não|nada disso|errado)[,.!:–— ]{1,3}(?:o|a|os|as|nosso|nossa|meu|minha) .{1,60}(?<!\w)(?:é|são|está|estão|era
  |tem|fica|começa|termina)(?!\w)
(?:está|estás) (?:confundindo|misturando|a confundir)
""",
        "reinforcement": r"""
^(?:sim[,.! ]{1,3})?(?:perfeito|exato|exatamente|ótimo|excelente|isso mesmo|isso aí)[,!. ]{1,3}(?:continue|continua
  |ficou|é|era|obrigad[oa]|assim|como)
^(?:perfeito|exato|exatamente|isso mesmo|excelente)[.! ]*$
(?:é|era|foi) (?:exatamente|justamente|bem) (?:isso|o que eu)
(?:continue|continua|mantenha|mantém) assim
(?:gosto|adoro|adorei) (?:de como|do jeito que|como) (?:você|tu)
ficou (?:perfeit[oa]|ótim[oa]|excelente|muito b[oe][ma])
(?:bom|ótimo|belo) trabalho
(?:mantenha|mantém|conserve) (?:esse|este|o mesmo|a mesma) (?:formato|forma|estilo|tom|estrutura)
""",
        "preference": r"""
(?:eu )?prefiro\b
(?:eu )?(?:não )?(?:gosto|curto)(?: muito| mais| nem um pouco)? (?!(?:de como|do jeito que)\b)\S
(?:odeio|detesto|adoro|amo)(?! (?:como|o jeito)\b)\b
não (?:suporto|aguento)\b
(?:meu|minha|meus|minhas) (?:\w{1,20} )?(?:favorit[oa]s?|preferid[oa]s?|preferência)
^(?:sempre|nunca) (?:responda|escreva|use)\b
^(?:responda|escreva|use) sempre\b
.{1,40} me (?:irritam?|incomodam?)\b
""",
        "identity": r"""
(?:eu )?sou (?:uma? |o |a )?(?!fã|grat[oa]|de opinião)\w{2,20}(?:or|ora|ista|eiro|eira|ente|nte|ico|ica|ólogo|óloga
  |logo|loga|ário|ária|ogado|ogada|eto|eta|ino|ina|ano|ana|iro|ira|chef)\b
(?:eu )?trabalho (?:como|de|em|no|na|para|com)\b
(?:meu|minha) (?:trabalho|profissão|cargo|nome|emprego) é
(?:eu )?me chamo \S
(?:moro em|moro no|moro na|vivo em|venho de|sou de|estudo|ensino|leciono)\b
(?:eu )?sou (?:uma? )?(?:marceneir|padeir|cozinheir|advogad|médic|músic|fotógraf|bombeir|engenheir|enfermeir
  |arquitet)[oa]\b
sou \w{3,20}(?: \w{3,20})? (?:há|faz|desde)(?!\w)
""",
        "goal": r"""
(?:meu|minha|nosso|nossa) (?:\w{1,20} )?(?:objetivo|meta|sonho|plano|propósito) (?:\S{1,20} ){0,3}é\b
(?:pretendo|planejo|espero|tenho a intenção de|penso em) (?!que)\w{2,20}(?:ar|er|ir|or)\b
(?:eu )?quero (?!saber|ver|dizer|entender|que|uma? (?:lista|tabela|resumo))(?:\S{1,30} )?\w{2,20}(?:ar|er|ir)\b
(?:queremos|planejamos|pretendemos) \w{2,20}(?:ar|er|ir)\b
estou (?:me preparando|treinando|economizando|estudando) para
gostaria de (?!saber|ver|que|entender)\w{2,20}(?:ar|er|ir)\b
""",
        "decision": r"""
(?:decidimos|decidi|escolhemos|escolhi|optamos|optei|combinamos|definimos)\b
(?:vamos|vou) (?:usar|utilizar|adotar|escolher|ficar com|mudar para|migrar para|seguir com|de)\b
(?:está|tá|fica) decidido
(?:vai ser|será|fica sendo) \S{2,20}[.! ]*$
""",
    },
    denied=r"\b(?:não|nunca|jamais|ninguém|sem|nem|nenhum|nenhuma)\b",
    mentioned=r"\b(?:se|diz|disse|dizem|aparece|mostra|mensagem|erro|botão|palavra|frase|texto|título|ele|ela|eles"
    r"|elas|cliente"
    r"|chefe|colega|talvez|alguém|traduza)\b",
)
