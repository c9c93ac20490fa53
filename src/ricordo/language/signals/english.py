"""English signal phrases."""

from ricordo.language.signals.types import SignalPack

__all__ = ["SIGNAL_PACK"]

SIGNAL_PACK = SignalPack(
    signals={
        "correction": r"""
^(?:no|nope|nah|sorry|wait|hold on|hmm+|ugh)(?:,? no)?[,.!;:\-–— ]{1,3}(?:(?:that'?s|that is|it'?s|this is) (?:not
  |wrong|incorrect)|(?:that|this|it) (?:isn'?t|should)|i (?:meant|said|mean|wanted|asked|need)\b|not \S
  |(?:please )?use \S{1,40}|we (?:use|said|don'?t|never)\b|you (?:mis\w{1,20}|got|should|forgot|used|put
  |were supposed)|don'?t \S
  |make it|put it|it should|the \w+ (?:is|should)\b|my name is|actually|instead|never (?!mind)\w{1,40})
(?:that|this|it)(?:'s| is| was)(?: just| simply| still| plain| completely| totally)? (?:wrong|incorrect|not (?:right
  |correct|true|quite right|what i (?:asked|meant|wanted|said|need)))
(?:that|this|it) (?:isn'?t|wasn'?t) (?:right|correct|true|quite right|what i (?:asked|meant|wanted|said|need))
(?:your|the) (?:answer|reply|result|summary|calculation|assumption) (?:is|was|looks) (?:wrong|incorrect|off
  |mistaken)
you(?:'ve| have)?(?: completely| again)? (?:misunderstood|misread|misheard|mixed up|got (?:it|that|this|me
  |the \w{1,20}) wrong|are (?:wrong|mistaken))
you're (?:wrong|mistaken|mixing)
i (?:didn'?t|did not) (?:mean|ask for|say|want) \S
i (?:meant|said) \S{1,30}(?: \S{1,30}){0,5},? not \S
^(?:please )?(?:try again|redo (?:it|that|this)|do it again|start over)(?:[,.!:;]| with| and| please|$)
^(?:please )?(?:change|switch) (?:that|it|this) (?:back )?to \S
^(?:well,? |but |oh,? )?actually,? (?:it'?s|that'?s|it is|we|i|the|my|our|use|no|you|not)\b
^(?:correction|scratch that|strike that)\b
^not \S{1,30}(?: \S{1,30}){0,3},? (?:but|use|it'?s|i meant|i said) \S
^(?:use|take|make it|call it) \S{1,30}(?: \S{1,30}){0,3},? (?:instead|not \S{1,30})[.! ]*$
(?:that|this|it) (?:can'?t|cannot) be (?:right|correct)
^(?:please )?(?:fix|correct) (?:that|this|it|my|the (?:name|date|spelling|number|title))\b
^wrong[,.!:] \S
you (?:made a mistake|miscalculated|misspelled|counted wrong|forgot that)
^(?:wait|hold on|sorry|careful)[,.! ]{1,3}.{1,60}, not \S
^(?:it|that|this|they)(?:'s|'re| is| are| was| were) \S{1,30}(?: \S{1,30}){0,3}, not \S
^(?:no|nope|wrong|incorrect)[,.!:;–— ]{1,3}(?:the|a|an|our|my|this|that|these|those|there|it|they) .{1,60}\b(?:is
  |are|was|were|isn't|aren't|should|has|have|runs?|lives?)\b
you(?:'re| are|'ve| have) (?:confus(?:ed|ing)|mixed up|mixing up)\b
^(?:close|almost|not quite),? but\b
(?:off by (?:one|two|a|an)|as i (?:told you|said)\b)
""",
        "reinforcement": r"""
^(?:yes|yeah|yep|right|correct)[,.! ]{1,3}(?:exactly|perfect|precisely|that'?s (?:right|correct|it|the one|exactly)
  |just like that|spot on|like that)\b
^(?:exactly|perfect|precisely|spot on|nailed it|brilliant)(?:[,!. ]{1,3}(?:thanks?|thank you|that'?s|this is|just
  |exactly|right|like|what|keep)\b|[.! ]*$)
(?:that's|that is|this is|that was|this was|it's) (?:exactly |precisely |just )?(?:right|correct|what i (?:wanted
  |needed|meant|was after|was looking for)|how i (?:want|like) it|the way i (?:want|like) it)
(?:this|that) (?:is|was|looks) (?:great|excellent|really helpful|so helpful|very helpful|helpful|much better|awesome
  |fantastic)
keep (?:doing|it like|it up|answering|writing|formatting|working)(?: (?:that|this|it))?
^(?:just |exactly )?like (?:that|this)[.! ]*$
(?:works|worked) (?:perfectly|great|like a charm|exactly)
i (?:really )?(?:like|love) (?:how|the way) you
^(?:great|good|nice|excellent|perfect) (?:job|work|answer|summary|explanation)\b
you got (?:it|that) (?:exactly )?right
^(?:i )?(?:really )?love (?:it|this)\b
this is (?:the|how) .{1,30}\b(?:i(?:'ll| will)? want|i wanted|i like)
^more (?:of this|like this)\b
^(?:spot on|perfect|great|exactly|lovely)[.!, ]{1,3}(?:do|use|keep|write|format) .{1,40}\b(?:same|like this
  |this (?:way|format|style))
keep (?:to )?(?:this|that|the same) (?:format|style|tone|structure|approach)
""",
        "preference": r"""
i(?:'d| would)? (?:really |strongly |much |generally |always |usually |still |also |just )?(?:prefer|favou?r)\b
i (?:really |absolutely |truly |just |also |still )?(?:like|love|enjoy|hate|dislike|detest|adore)(?! (?:to (?:see
  |know|ask|understand)|how you|the way you|that idea|this idea|your))(?: it)? \w
i (?:really |just )?(?:don'?t|do not) (?:really |much )?(?:like|enjoy|care for|want (?:you to|emojis?|long|any))\b
i (?:can'?t|cannot|can not) stand\b
(?:my|our) (?:favou?rite|preferred|preference)\b
i(?:'d| would) (?:much )?rather\b
^(?:please )?(?:always|never) (?:answer|reply|respond|write|use|call me|show|format|explain|give|keep|start|end|ask
  |add)\b
i'm (?:not )?a (?:big |huge )?fan of
.{1,40} (?:annoys?|bothers?|irritates?) me\b
""",
        "identity": r"""
i(?:'m| am) (?:an?|the) (?!bit|little|lot|few|big fan|huge fan|fan|step|mess)(?:[\w-]{1,30} ){0,4}(?:\w{3,20}(?:er
  |or|ist|ian|eer|yst|man|woman)|assistant|accountant|consultant|student|freelancer|intern|nurse|chef|cook|lead|head
  |pilot|coach|cto|ceo|cfo|dba|sre|pm|vegan|vegetarian|parent|architect|dad|mum|mom|postdoc|barista|judge)\b
i work (?:as|at|for|in|on the)\b
my (?:job|role|profession|occupation|day job|title) is\b
my name(?:'s| is) \S
^(?:you can |just |please )?call me (?-i:[A-Z])\w
i(?:'m| am) (?:originally )?from (?-i:[A-Z])
i live in\b
i(?:'m| am) based in\b
i (?:teach|study|lead|run|manage|maintain) (?:an?|our|at|in|\w{1,20} (?:at|for|in)|the \w{1,20} (?:team|group
  |project))\b
i(?:'m| am) \d{2} years old
i(?:'m| am) (?:on|in|part of) the \w{1,20}(?: \w{1,20}){0,2} (?:team|group|department|squad)
^(?:for context,? |by the way,? |just so you know,? )?(?:i|my \w{1,20} and i) (?:run|own|teach|lead|manage) an? \w
^as an? \w{3,20}(?: \w{3,20})?,? i\b
""",
        "goal": r"""
i(?:'m| am)(?: also| really| currently| still| now)? (?:planning|aiming|intending|going|hoping) to \w
i (?:also |really |still |now )?(?:plan|aim|intend|hope) to (?!hear|see)\w
i(?:'m| am) (?:training|studying|preparing|saving(?: up)?) for\b
i (?:really |also |still )?want to (?!know|ask|see|understand|say|make sure|check|be clear|point|thank|add a)\w
(?:my|our) (?:\w{1,20} ){0,2}(?:goal|target|aim|objective|dream|ambition)(?: for [\w ]{1,30})? (?:is|remains)\b
(?:my|our) plan is to\b
^(?:next|then),? (?:i'll|i will|i'm going to|we'll|we will|we want to)\b
we(?:'re| are) (?:planning|aiming|hoping) to \w
we (?:plan|aim|hope|want) to (?!know|ask|see|check)\w
we (?:need|have|must) to (?:ship|launch|release|finish|migrate|deliver|be (?:done|live|ready)) .{0,60}\b(?:by|before
  |until)\b
i(?:'d| would) (?:really )?(?:like|love) to (?:learn|become|run|publish|finish|write|build|move|start|open|visit
  |read|get|pass)\b
(?:by|before|until) [\w ]{2,20},? (?:i|we) (?:hope|want|plan|aim|intend) to\b
""",
        "decision": r"""
let'?s (?:go with|use|pick|choose|stick (?:with|to)|settle on|adopt|switch to|move to|take|keep using)\b
(?:i'll|we'll|i will|we will|i'm going to|we're going to|we are going to) (?:go with|use|pick|choose|stick (?:with
  |to)|adopt|settle on|switch to)\b
we should (?:go with|use|pick|choose|stick (?:with|to)|adopt)\b
(?:i|we)(?:'ve| have)?(?: finally| now| just| all)? (?:decided|chose|chosen|selected|settled on|agreed (?:on|to)
  |opted for|picked|committed to)\b
(?:i|we)(?:'re| are|'m| am) going with\b
(?:final|my|our|the) decision(?: is|:)
(?:it'?s|that'?s) (?:decided|settled|final)\b
^(?:right|ok|okay|so|then|fine)?[,. ]{0,2}\w{2,20}(?: \w{2,20})? it is[.! ]*$
""",
    },
    denied=r"\b(?:not|never|no longer|no one|nobody|hardly|\w{2,8}n'?t|cannot|without|neither|nor)\b",
    mentioned=r"\b(?:if|whether|unless|suppose|imagine|when|says?|said|saying|reads?|prints?|shows?|displays?|logs?"
    r"|called"
    r"|named|titled|labell?ed|message|error|string|phrase|text|title|headline|word|button|label|prompt"
    r"|quote|quoting|wrote"
    r"|writes|asks|asked|answered|replied|claims?|thinks|translate|lyrics?|might|maybe|perhaps|someone"
    r"|somebody|users?"
    r"|customers?|he|she|they|add retry)\b",
)
