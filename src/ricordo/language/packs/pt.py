"""Portuguese."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACK"]


PACK = LanguagePack(
    code="pt",
    name="Portuguese",
    letters="éàçùáíóúãõ",
    words={
        "passing_word": """
hoje agora ontem amanhã manhã tarde noite já ainda quase finalmente logo depois semana café cansado cansada
acabei acabou
""",
        "lasting_word": """
sempre nunca jamais cada só apenas deve tem todos todas tudo ninguém normalmente até desde senão exceto padrão
por fica mais diante
""",
        "hearsay_word": """
diz disse dizem acha pensa jura conta parece ouvi escreveu quer queria poderia seria talvez se
""",
        "role_word": """
é são tem cuida dirige faz gerencia trabalha mora vive chama pertence usa usamos custa responsável nosso nossa
alérgico alérgica
""",
        "stop": """
o a os as um uma uns umas do da dos das ao à aos às no na nos nas pelo pela pelos pelas este esta estes estas esse
essa isto isso aquele aquela aquilo eu me mim tu te ti você vocês ele ela eles elas nós nos vos se lhe lhes meu
minha meus minhas teu tua seu sua seus suas nosso nossa nossos nossas que quem qual quais quando onde como porquê
porque sou és é somos são fui foi foram era eram ser sido estou está estão estava estar estamos tenho tem têm temos
tinha ter há havia haver vou vai vão ir posso pode podem e ou mas se embora enquanto pois a ante com contra de desde
em entre para por sem sob sobre até não nem sim já muito mais menos tão também todo toda todos todas aqui aí ali
agora então obrigado obrigada
""",
        "function": """
o a os as e é são eu você nós não um uma em para com de do da no na dos das que meu minha nosso nossa sempre nunca
mas ou se este esta sim obrigado obrigada prefiro estou sou temos tenho ao por muito agora só
""",
        "determiner": "o a os as do da dos das no na ao nosso nossa meu minha cada",
        "generic": "usar utilizar chamar coisa tipo maneira tempo fazer ter ir tomar dizer saber",
        "abbreviation": "dra exmo",
        "origin": "brasileiro brasileira português alemão alemã",
        "ending": """
acoes acao ando endo indo amos emos imos aram eram ado ada ido ida ar er ir am em as os es a o e s
""",
        "light": "usuario atualmente muito",
        "wish": "quer deseja",
        "denial_word": "nao sem",
        "dummy_secret": """
senha obrigatório obrigatória requerido expirada vazia desconhecida incorreta opcionais
""",
        "not_passphrase": """
dos ela ele está foi isso mais mas muito não nas nos pela pelo por quatro que sem ser seu sua têm uma você
""",
        "secret_identifier": "senha",
    },
    tables={
        "bound_period": """
week 1 = semana que vem; month 1 = mês que vem; year 1 = ano que vem
""",
        "choice_place": "1 = o primeiro|a primeira|primeiro|primeira; 2 = o segundo|a segunda|segundo|segunda",
        "factor": "2 = o dobro|dobra|dobre; 0.5 = a metade|metade",
        "weekday_form": """
0 = segunda|segundas; 1 = terça|terças; 2 = quarta|quartas; 3 = quinta|quintas; 4 = sexta|sextas;
5 = sábados; 6 = domingos
""",
        "weekday": """
0 = segunda-feira; 1 = terça-feira; 2 = quarta-feira; 3 = quinta-feira; 4 = sexta-feira; 5 = sábado; 6 = domingo
""",
        "month": """
1 = janeiro; 2 = fevereiro; 3 = março; 4 = abril; 5 = maio; 6 = junho; 7 = julho; 8 = agosto; 9 = setembro;
10 = outubro; 11 = novembro; 12 = dezembro
""",
        "day": "0 = hoje; -1 = ontem; -2 = anteontem; 1 = amanhã",
        "period": """
week -1 = semana passada; week 1 = próxima semana; month -1 = mês passado; month 1 = próximo mês;
year -1 = ano passado; year 1 = próximo ano
""",
        "unit": "day = dia|dias; month = mês; year = ano|anos",
        "number": """
0 = zero; 1 = um|uma; 2 = dois|duas; 3 = três; 4 = quatro; 5 = cinco; 6 = seis; 7 = sete; 8 = oito; 9 = nove;
10 = dez
""",
        "distance_lead": "-1 = há; 1 = em",
        "numeral": """
0 = zero; 0.5 = meio|meia; 1 = um|uma; 2 = dois|duas; 3 = três; 4 = quatro; 5 = cinco; 6 = seis; 7 = sete; 8 = oito;
9 = nove; 10 = dez; 11 = onze; 12 = doze|dúzia; 13 = treze; 14 = catorze|quatorze; 15 = quinze;
16 = dezesseis|dezasseis;
17 = dezessete|dezassete; 18 = dezoito; 19 = dezenove|dezanove; 20 = vinte; 30 = trinta; 40 = quarenta;
50 = cinquenta;
60 = sessenta; 70 = setenta; 80 = oitenta; 90 = noventa; 100 = cem|cento; 200 = duzentos; 500 = quinhentos;
1000 = mil;
1000000 = milhão|milhões
""",
        "numeral_join": "0 = e",
        "numeral_article": "1 = um|uma",
        "measure": """
time 1 = segundo|segundos; time 60 = minuto|minutos; time 3600 = hora|horas; time 86400 = dia|dias;
time 604800 = semana|semanas; time 2592000 = mês|meses; time 7776000 = trimestre|trimestres; time 31536000 = ano|anos;
EUR 1 = euro|euros; share 1 = por cento
""",
    },
    phrases={
        "next_weekday_behind": "que vem",
        "next_weekday": "próxim[ao]",
        "at_present": "hoje|esta (?:manhã|noite|semana|vez)|agora mesmo|neste momento|primeiro",
        "open_question": r"""
qual|quais|quem|onde|quando|quant[oa]s?|que (?:horas|dia|tamanho|número|versão|idioma|formato|nome|cor
  |tipo)|como se chama\w*
""",
        "question_context": "eles?|elas?|dele|dela|isso|isto|ambos|os dois|também|assim",
        "evasion": r"""
(?:eu )?não sei|sei lá|nem ideia|depende|vamos ver|(?:eu )?te (?:digo|falo|aviso)|pergunt\w+ (?:a|para|pro)
  |depois|mais tarde|ainda não|talvez|boa pergunta|tanto faz|espera|um (?:momento|segundo|minuto)
  |você (?:decide|escolhe)|preciso (?:ver|perguntar)
""",
        "asked_action": r"""
(?:devo|devemos|tenho que|temos que|deveria(?:mos)?|é para) (?P<action>[^?]{3,100}?)\?
""",
        "lead_in": r"""
(?:nota|anotado|lembrete|importante|a lembrar):|além disso, |foi (?:dito|anotado|decidido|combinado) que
""",
        "omitted": r"(?:e )?mais \w+ (?:linhas|páginas)\b|[\w ]{0,20}(?:truncado|omitido|cortado)\b",
        "recurring": "aniversário|todo ano|todos os anos",
        "no_date": "hoje em dia",
        "month_begin": r"início de",
        "month_end": r"fim de|final de",
        "pronoun_subject": r"(?:ele|ela|eles|elas|isso|isto)\b",
        "problem": r"""
erro|não (?:funciona|vai|liga|sai|deixa)|falha|quebrado|travou|continua sem
""",
        "machine_address": r"""
(?:nota|mensagem|instruç(?:ão|ões)|aviso|atenção) (?:ao|à|para|aos|às) ?(?:o |a |os |as |qualquer )?(?:ia\b
  |assistentes?|agentes?|bots?|modelos?|ajudantes?)
(?:se|quando) (?:uma?|o|a|algum) (?:ia\b|assistente|agente|bot)\w* (?:ler|lê|processar|resumir)
aos (?:sistemas|assistentes|agentes) que\b
""",
        "valid_from": "a partir d[aeo]",
        "valid_since": "desde",
        "valid_until": "até",
        "past_state": "era|eram|estava|foi",
        "ended_lead": r"""
chega de|deixámos|deixamos|(?:em vez|em lugar|no lugar) de(?!\s+\w+[aei]r\b)
""",
        "limit": "no máximo|máximo|até|não mais de|menos de|teto|limite|orçamento",
        "ended_tail": r"""
(?:(?:é|são|era|eram) )?(?:demasiado|muito) (?:pouco|curto|longo|pequeno|grande|tarde|cedo|alto|baixo)|(?:é|são|era
  |eram) pouco
""",
        "change_cue": r"""
agora|já não|não .{1,30} mais|em vez de|a partir de|desde|mud\w+|pass(?:a|ou|amos) (?:a|para|de)|troc\w+
  |aument\w+|reduz\w+
substitu\w+|adi(?:ado|ou|amos)|deix(?:ou|amos) de|nov[oa]s?|afinal
""",
        "ago": "atrás",
        "ordinal_suffix": "º",
        "year_lead": "em",
        "weekday_lead": "na|no",
        "day_time": r"de\s+(?:manhã|tarde|noite)|à\s+(?:tarde|noite)",
        "given_name_particle": "dos",
        "greeting": "olá|oi",
        "name_opening": "(?:o )?meu nome é|me chamo|chamo-me|(?:pode )?me chama(?:r)? de",
        "name_opening_unsure": "(?:eu )?sou",
        "after_name": "de",
        "person_lead": r"""
(?:(?:a |o )?(?:minha|meu|noss[ao]|sua|seu)) (?:[\w-]+ ){0,2}(?:mulher|esposa|marido|filh[ao]|irmã|irmão|mãe|pai
 |ti[ao]|prim[ao]|sobrinh[ao]|av[óô]|amig[ao]|vizinh[ao]|colega|chefe|médic[ao]|dentista|professora?)
(?:senhora?|dona|sra?\.)
""",
        "person_tail": r"""
(?:disse|diz|prefere|quer|queria|pensa|mora|vive|trabalha (?:em|na|no|para|como)|é alérgic[ao])
""",
        "project_lead": "(?:o |nosso |do )?(?:projeto|repositório)",
        "acknowledgement": r"""
obrigado|obrigada|muito obrigado|muito obrigada|valeu|tá bom|está bem|beleza|entendi|certo|sim|combinado
tudo bem
""",
        "silent": "trabalha como",
        "negation": "não",
        "claim_negation": "não",
        "from": "de",
        "to": "a",
        "home_verb": "mora",
        "home_place": "em",
        "work_word": r"trabalh\w*|projeto\w*|equipe",
        "we": r"nós|nosso\w*",
        "password_name": "senha",
        "secret_copula": "é",
        "card_word": "cartão",
        "no_in_reply": "não",
        "yes_or_no": "sim|não",
        "no_in_rule": "não",
        "points_back": "isso|até lá|desde então|(?:antes|depois) disso",
        "contradiction": "não",
        "agreement": "sim|perfeito|era isso|resolvido|funciona|exato|já está",
        "next_step": "posso",
        "no_in_summary": "não",
        "question_tag": "né",
        "ask_place": r"\bonde\b",
        "ask_person": r"\bquem\b",
        "ask_one_time": "primeir[oa]",
        "time_article": "o|a|do|da",
        "before": "até",
        "after": "depois",
        "month_lead": "em|até|depois de",
        "polite_opening": "por favor|e",
        "question_word": "quem|qual|quais|onde|porqu[eê]",
        "question_opening": "quem|qual|quais|onde",
        "memory_request": r"""
(?:diz-me|diga-me|me diga|me diz|mostra-me|mostre-me|me mostre|lembra-me|lembre-me|explica-me
  |explique-me)\b(?!\s+que\b)
lista\s+(?:os|as)\b
""",
        "remember_verb": "não (?:te )?esque[çc]as?",
        "remember_that": "de que|que",
        "remember_clause_verb": "lembra(?:-te)?|lembre-se",
        "remember_clause_that": "que",
        "medium_secret_name": "chave (?:api|secreta|privada|de (?:api|acesso))",
        "secret_name_ascii": "chave",
        "secret_is": "é",
        "secret_is_foreign": "é|será",
        "secret_is_now": "agora",
        "secret_purpose": "do",
        "user_name": "usu[aá]rio",
        "user_and": "e",
        "secret_lead": "com|a",
        "secret_article": "a",
        "secret_column": "senha",
        "pin_is": "é",
    },
    cues={
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
como (?:sempre|da última vez|de costume)|outra vez muito \w+
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
    },
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
    mentioned=(
        r"\b(?:se|diz|disse|dizem|aparece|mostra|mensagem|erro|botão|palavra|frase|texto|título|ele|ela|eles|elas"
        r"|cliente|chefe|colega|talvez|alguém|traduza)\b"
    ),
)
