"""Portuguese cues."""

from ricordo.language.cues.types import CuePack

__all__ = ["CUE_PACK"]

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
