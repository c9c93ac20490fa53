"""English cues."""

from ricordo.language.cues.english_chat import CHAT_CUES
from ricordo.language.cues.types import CuePack

__all__ = ["CUE_PACK"]

CUE_PACK: CuePack = {
    **CHAT_CUES,
    "greeting": r"""
^(?:hey|hi|hello|hiya|howdy|yo|good (?:morning|afternoon|evening|day)|greetings|welcome back)
^(?:long time no|(?:it'?s |so |really |always )?(?:great|good|nice|lovely|awesome|wonderful) (?:to (?:see|hear|meet
  |talk|chat|catch)|seeing|hearing|talking|chatting|catching))
^how (?:are|have|is|'s) (?:you|it|things|everything|life)
^what'?s (?:up|new)
^hope (?:you|all|everything|things|your)
""",
    "farewell": r"""
^(?:bye|goodbye|good ?night|see (?:you|ya)|talk (?:to you )?(?:soon|later)|take care|ttyl|later|cheers|catch you
  |until next time|have (?:a|an|fun|yourself))
(?:talk|see you|chat|catch up|speak)(?: to you| again)? (?:soon|later|tomorrow|then)
^(?:i )?(?:gotta|got to|have to|should|better) (?:go|run|head out|get going)
""",
    "thanks": r"""
^(?:thanks|thank you|thx|ty|cheers|much appreciated|i(?: really)? appreciate|appreciate (?:it|that|you|your))
^(?:many|big|huge) thanks
^(?:so )?(?:glad|happy|pleased) (?:you|to (?:hear|help|know|see)|that you|it helped)
""",
    "acknowledgement": r"""
^(?:lovely|super|ha|ouch|great|ok(?:ay)? go|(?:let'?s|better|maybe|please|rather) (?:not|do)|please do|do (?:it|that
  |so)
  |true|fair|good)[\s.!,]*$
^(?:ok(?:ay)?|k|sure(?: thing)?|yes|yeah|yep|yup|no|nope|right|exactly|absolutely|definitely|totally|agreed|true
  |got it|understood|sounds (?:good|great|fun|like)|makes sense|fine|cool|great|perfect|nice|done|lgtm
  |no (?:problem|worries|way)|of course|fair enough|for sure|will do|you bet|you'?re welcome|my pleasure
  |not a problem|i (?:see|agree|know|understand|hear you|get it|bet|guess so|think so|hope so)|same here|me too
  |you'?re (?:so |totally |absolutely )?right|that'?s (?:right|true|fine|it|ok(?:ay)?)|it (?:does|is|was|sure is)
  |go ahead|continue|proceed|looks good)[\s.!,]*$
^(?:totally |completely |definitely |absolutely )?(?:agreed|agree|i agree|i (?:totally|completely
  |definitely) agree)(?: with (?:you|that))?[, ]{0,2}\w*[.!]?$
""",
    "praise": r"""
^(?:congrats|congratulations|well done|good (?:job|for you|one|call|point|idea)|great (?:job|work|idea|point)
  |nice (?:one|job|work)|kudos|bravo|way to go|proud of you|so proud)
^you(?:'re| are|'ve| have| look| did| must|'ll| will| should|'d| would| can| could| got| two| guys| both| always
  | really| make| deserve)
^your (?:\w+ ){1,4}(?:is|are|looks|sounds|must|will)
(?:proud of|happy for|excited for|rooting for|inspired by|admire|impressed (?:by|with)|believe in|glad
  |congrats (?:to|on)) (?:that )?(?:you|your|u)
^i(?:'m|\s+am) (?:so |really |super |very )?(?:proud|happy|glad|sorry|excited|stoked|thrilled|impressed|sure|here
  |amazed|jealous|inspired)(?: to hear| to see| for| of| that)? ?(?:you|your|that|it|about)
^i(?:'m|\s+am) (?:so |really )?(?:glad|sorry|happy) (?:you|to hear|to see|that|it)
^i (?:love|like|admire|know|bet|hope|wish|think|can see|see|believe|heard|trust|appreciate)(?: that| how| the way
  | what)? (?:you|your|u|you're|you'll|you've|you'd)
^(?:keep (?:it|up|going|on|pushing|at)|go for it|don'?t (?:give up|worry|forget)|hang in there|you got this
  |never give up|stay (?:strong|positive|safe))
^(?:so |such )?(?:cool|great|awesome|amazing|nice|glad|happy|proud|sorry|excited|jealous)(?: to hear| to see| that
  | for)+ ?(?:you|you're|about|it)?
""",
    "reaction": r"""
^(?:wow|whoa|woah|yay|aww?|omg|haha|lol|amazing|awesome|fantastic|wonderful|incredible|beautiful|gorgeous|sweet
  |brilliant|impressive|cool|nice|great|stunning|so cool|too funny)(?=$|[\s!.,])
^(?:that|this|it|those|these|they)(?:'s|'re| is| are| was| were| must| look| looks| sound| sounds| seem| seems|'ll
  | will| would|'d)(?: \w+){0,4} (?:great|good|awesome|amazing|cool|nice|fantastic|wonderful|incredible|beautiful
  |inspiring|impressive|lovely|sweet|fun|adorable|cute|delicious|tasty|yummy|exciting|gorgeous|stunning|perfect
  |special|interesting|tough|hard|rough|neat|brilliant|relaxing|peaceful|powerful|super|sad|terrible|awful
  |unbelievable|insane|crazy|helpful)
^(?:can't|cannot|i can't|i cannot) (?:wait to (?:see|hear)|believe|imagine)
^(?:what|how) (?:a |an )?(?:\w+ ){0,3}(?:idea|story|picture|photo|view|pic|thing|surprise|cool|great|nice|awesome
  |beautiful|lovely|sweet|cute|adorable)
^love (?:that|your|the|it|this)
^(?:sounds|looks) (?:like|great|fun|good|awesome|amazing|cool|fantastic|delicious|so|super|really)
^(?:no wonder|nothing (?:like|better|beats))
""",
    "wish": r"""
^(?:good luck|best of luck|fingers crossed|all the best|enjoy|happy (?:birthday|holidays|new year)|merry|hope (?:it
  |that|to see|you)|(?:i )?wish(?:ing)? you|may you|wishing|here'?s to|let'?s (?:keep|catch up|do it|go|make|stay
  |hang|chat|talk))
^i hope (?:you|it|that|your|things|everything)
""",
    "listener": r"""
(?:you|you're|you've|you'd|you'll|your|yours|yourself|u|ya)
""",
    "offer": r"""
^(?:let me know|feel free|just let me know|don'?t hesitate|just ask|if you (?:need|want|have|ever|like|'d like)
  |i(?:'m| am) (?:here|always here|happy|glad)|i(?:'d| would) be (?:happy|glad)|happy to (?:help|assist|chat
  |answer)|would you like|do you want me|shall i|should i|want me to|is there anything|anything else|here(?:'s| is
  | are)|i can (?:help|also|show|walk|give|provide|explain|assist)|let me (?:check|look|see|know|run|start|first
  |read|take|try|explain|find|search|open|verify)|i(?:'ll| will) (?:now |first |then |also )?(?:check|look|run
  |start|read|take|update|fix|add|create|write|go ahead|do that|help|be there|support|let you|keep you|proceed
  |begin|open|search|make|send|give|get)|sure[,!] (?:here|i|let)|certainly|great question|good question
  |i understand|i apologi[sz]e|sorry (?:for|about)|to (?:help|assist) you)
""",
    "question": r"""
^(?:what|who|whom|whose|which|when|where|why|how|do|does|did|is|are|was|were|am|can|could|would|will|should|shall
  |have|has|had|may|isn't|aren't|don't you|doesn't|didn't|won't|any (?:idea|chance|thoughts|advice|tips|plans
  |recommendations|news|luck|suggestions)|got any|anything|what's|who's|how's|where's)\b[^.!]{0,200}\?
\?["')\s]*$
""",
    "request": r"""
^(?:can|could|would|will) (?:you|u|we)
^(?:please |now |then |ok,? |and |also |just )*(?:run|fix|add|write|show|explain|create|make|update|remove|delete
  |refactor|implement|check|look|find|tell|give|help|open|read|rewrite|rename|debug|summari[sz]e|translate|generate
  |list|try|test|install|build|start|stop|commit(?! messages?)|push|merge|review|change|move|search|compare|convert
  |draft|continue|go|send|take|let me (?:see|know)|suggest|recommend|describe|analy[sz]e|calculate|sort|format
  |print|plan|set up|clean|investigate|figure|have a look)
^i (?:need|want|would like|'d like) you to
^i(?:'d| would)? (?:need|like|want) (?:some |any |your )?(?:help|advice|suggestions|recommendations|tips|ideas
  |information)
^i(?:'m| am) (?:looking for|trying to (?:find|figure|understand|decide)|wondering|curious|not sure (?:how|what|if
  |why|which))
""",
    "remember": r"""
^(?:warning|careful|caution|beware|attention)\b ?[:,\-–—]
^(?:please |and |also |just |so |ok,? |important: ?)*(?:remember|note|keep in mind|bear in mind|don'?t forget
  |make a note|be aware|take note|memori[sz]e|save this|store this)(?: that| to| this| this:|:|,)
^(?:fyi|for the record|for (?:your|future) (?:information|reference)|nb|n\.b\.|heads[- ]up|important|note)\b ?[:,\-–—]
(?:from now on|going forward|in (?:the )?future,|for (?:all )?future)
""",
    "decision": r"""
we (?:keep|stay with|stick with|stick to|go with|go for|settle on) \w
(?:we|i)(?:'re|'m| are| am) (?:now |also |finally )?(?:moving|migrating|switching|replacing|porting|rewriting|dropping
  |adopting|retiring|splitting|merging|standardi[sz]ing) (?!on\b|ahead|forward|out\b|in\b|house)\w
(?:we|i|they|the team|everyone|all)(?:'ve| have|'d| had)? (?:finally |just |already |also |then |both |now )?
  (?:decided|chose|chosen|agreed|settled on|opted|picked|committed to|voted|selected|resolved to
  |ended up (?:going with|choosing|with))
(?:we|i)(?:'ll| will| are going to|'re going to|'m going to| am going to) (?:use|go with|stick (?:to|with)|adopt
  |keep|drop|switch|move to|migrate|standardi[sz]e|ship|skip|replace|stay (?:with|on))
^(?:so |ok,? |okay,? |alright,? |then |yes,? |no,? |great,? )*(?:let'?s|lets) (?:use|go (?:with|for)|stick (?:to
  |with)|adopt|keep (?:the|using)|drop|switch|move to|migrate|standardi[sz]e|ship|skip|replace|stay (?:with|on)
  |call it (?!a day)\w+|name it|put|store|make it|not|deploy|postpone)
we(?:'re| are| have|'ve)? (?:moving to|moved (?:from \w+ )?to|dropped|adopted)
(?:we|i)(?:'re| are|'m| am| have|'ve)? (?:going with|switching to|migrating to|switched|migrated|replaced
  |standardi[sz]ed on|deprecated)
(?:the )?(?:final |our |my )?(?:decision|choice|verdict|plan|agreement|consensus) (?:is|was|:)
(?:it(?:'s| is| was)|has been|have been|was|were) (?:decided|agreed|approved|settled|chosen|signed off)
^(?:decision|decided|agreed|approved|resolved):
""",
    "preference": r"""
^(?:please )?be (?:more |less )?(?:concise|brief|terse|direct|precise|verbose|polite|formal|specific|honest
  |critical)\b
^(?:please )?stop (?:apologi\w+|thanking|explaining|repeating|summari\w+|asking|adding|using|guessing)\b
(?:short|long|brief|terse|detailed|concise) (?:answers?|repl(?:y|ies)|explanations?|messages) (?:is|are|please|only)\b
i(?:'d)? (?:really )?(?:want|need|would like|like) you to (?:stop|always|never|not|avoid|keep)\b
i (?:always |mostly |only |usually )?(?:use|write|type|read|run) .{1,40}, (?:not|never) \S
(?:please )(?:keep|make) (?:your |the )?(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|diagrams?
  |comments?) \S
i(?:'d| would)? (?:much |strongly |really |generally |usually |always |also |still |definitely )?(?:prefer|rather
  |favou?r)
i (?:really |absolutely |also |do |just |totally |always |still |personally |particularly |especially )*
  (?:like|love|enjoy|adore|hate|dislike|detest|can'?t stand|despise)(?! you| that you| to hear)
i (?:really |just )?(?:don'?t|do not|never) (?:really |much )?(?:like|enjoy|want (?:any|you to)|care for|eat|drink)
i(?:'m| am) (?:a (?:big|huge) fan|fond|into|not (?:a (?:big )?fan|into|keen)|allergic|vegetarian|vegan|celiac
  |coeliac|diabetic|obsessed
  |crazy about|passionate|a \w+ (?:person|lover|enthusiast|fan)|keen on|interested in)
(?:my|our)(?: \w+){0,2} fav(?:ou?rites?|e)?s?\b
favou?rites? (?:\w+ ){0,3}(?:is|are|was)
(?:my|our) (?:preference|preferred|taste|go-to|passion|hobby|hobbies)
do you (?:want|prefer|like|favou?r)
^(?!(?:he|she|they|it|this|that|who)\b)(?:(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?
  |(?:my|our) (?:\w+ ){1,2}|the (?:team|customer|client|boss|users)) ?(?:all |both |always |really |absolutely
  |also |generally |usually |still |strongly )*
  (?:prefers?|likes|loves|enjoys|hates|dislikes|favou?rs|can'?t stand|(?:is|are) (?:allergic|vegetarian|vegan))\b
^(?:please |always )*(?:answer|reply|respond|write|speak|talk)(?: to me)? (?:in|with|briefly|concisely|short|only)
^(?:please )?(?:keep|make) (?:your |the )?(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|code
  |comments?) \S
^(?:please )?(?:call me|address me)
^(?:please )?(?:no|don'?t (?:use|add|write|give me|send)|avoid|skip|without) (?:emojis?|comments|docstrings|bullet
  |small talk|apolog|long|lengthy|jargon|markdown|tables|boilerplate)
""",
    "convention": r"""
^only \w+ (?:for|from|with|in|by|that)\b
^(?:our |my |the |some )?(?:\w+ ){0,2}(?:style|guidelines?|preferences?|naming|etiquette) ?: ?\S
but never (?:to|in|on|from|with|into)\b
[,;:] (?:so )?(?:please )?(?:always|never) (?!mind\b)\w
(?:from now on|going forward)
(?:everything|anything|nothing|whatever|files) (?:under|in|inside|outside|below) \S+ (?:is|are|gets?|stays?|must|may
  |goes|belongs)\b
nobody (?:\w+ )?(?:touches|edits|pushes|merges|deploys|commits|changes)\b
^(?:\w+ ){0,3}\w+s are (?:always |never |only )?(?:named|prefixed|suffixed|written|spelled|spelt|formatted|rounded
  |tagged
  |signed|sorted|versioned|exported|squashed|abbreviated|numbered)
^(?:our |the |all |new )?(?:\w+ ){0,2}(?:branches|tags|commits?|tables|columns|fields|files|tests|modules|fixtures
  |classes
  |variables|migrations|releases|topics|queues|buckets) are (?:called|kept|stored|made|cut)
(?:go|goes|live|lives|belong|belongs) (?:to|into|in|under|at|on) \S{0,60}[/_.]\S
^(?!(?:i|we|he|she|they|it|you)\b)(?:[\w'/-]+ ){1,4}stays? (?:in |as |an? )?(?!.{0,80}\b(?:until|till|tonight|today
  |here
  |there|home)\b)\S
(?:review|approve|own|check|sign)(?:s)?(?: off)?(?: on)? (?:everything|anything|every|all|any|each|whatever)\b
(?:^|[,;:] |and )we (?:always |never |only )?(?:squash|rebase|lint|tag|sign|pin|format|version|prefix|name|spell
  |indent
  |review|pair|document|mock|deploy|release|merge|ship|branch|round|deprecate|feature-flag)(?:-\w+)?
  (?! (?:it|that|this|them|the|now|today|tomorrow|tonight|on \w+day\b))
^(?:squash|rebase|fast-forward|merge)(?: merges?| commits?)?(?: only)?[.!]?$
\b(?:one|exactly one|at most \w+|at least \w+|a single) (?:\S+ ){1,4}per \w+
(?:one|two|an?|no) (?:\w+ )?(?:approvals?|reviewers?|reviews?) (?:is|are) (?:enough|required|needed)
^(?:please |and |also |but |so |no,? |instead,? )*(?:use|prefer|take|install|write|compare|check|pin|parse|escape
  |validate
  |read|render|round|import|export|sort|order|return|raise|throw|catch|format|name|call|spell|encode|hash|run|test
  |build|deploy|merge|tag|stick to)
  (?! (?:it|this|that|them|these|those)\b)\b.{1,80}?(?:,|;| -| —) (?:not|never|no|without|and not|and never|instead of
  |rather than) \S
^(?!(?:no|yes|it|this|that|he|she|they|i|we|you|but)\b)\w+s(?: (?:in|as|with|for|by) \w+)?, (?:not|never|no) \S
(?:must|mustn't|may not|may only) (?!.{0,40}\b(?:by|before|until) (?:the |end|next|mon|tue|wed|thu|fri|\d))
  (?:not |never |always |only )?(?:finish|fit|stay|remain|keep|land|answer|support
  |work
  |never|be|not|carry|hold|come|reach|set|call|import|write|read|take|last|compile|build)
^(?:please )?(?:no) (?:\w+ ){0,2}(?:exports?|imports?|dependenc\w+|globals?|mocks?|classes|abbreviations?
  |merge commits?
  |force.pushes|em dashes|commas?|secrets?|prints?|todos?)\b
(?:needs?|requires?|gets?) (?:an?|one|two|exactly \w+|at least \w+) (?:\S+ ){0,2}(?:changelog|reviewer|reviewers
  |approval
  |approvals|ticket|test|tests|owner|label|migration|entry|line|description)
(?:we|you|everyone|people|developers|contributors|all \w+|every \w+|each \w+|tests|commits|branches|migrations
  |releases|builds|prs|pull requests)(?: \w+){0,2} (?:always|never|only)(?! (?:see|get|got|saw|seen|need|needed|want
  |know|have|had|find|found)\b)
(?:we|you|they|everyone|people|developers|contributors|all \w+|every \w+|each \w+|tests?|code|commits?|branches|files?
  |migrations?|releases?|builds?|prs?|pull requests|services?|modules?|functions?|names?)(?: \w+){0,2}
  \s(?:must|must not|mustn'?t|should always|should never|should not|have to|has to|need to be|needs to be
  |are not allowed|may only|may not)
^(?:and |also |but |so |btw,? |by the way,? |please |in this (?:repo|project|codebase),? |here,? )*(?:always|never
  |only
  (?! (?:the|an?|one|two|three|\d+|this|that|my|some|then|after|if|when|because)\b)) \w+
^(?:and |also |but |so |btw,? |by the way,? |please )*(?:do not|don'?t|avoid|stop) (?:ever |using )?(?:use|using
  |commit|push|merge|run
  |touch|edit|call|import|deploy|add|mock|write|put|store|log|hardcode|hard-code|change|rely|install|squash|rebase
  |force|rename|delete|format|break|mix|test|start|catch|raise|create|import)
^(?:(?:in|for|on) (?:this|the|our) \w+,? |please |and |also |but |so |no,? |instead,? |actually,? )*(?:use|prefer
  |stick (?:to|with)|follow|name|put|keep|write|store|run|format|wrap|prefix|indent|sign|tag|squash|rebase
  |place)\b.{1,80}?(?:,? (?:not|never|instead of|rather than|over|and not)|for (?:all|every|each|any|everything
  |new)|(?:in|under|inside|with|as) \S+|everywhere|always|by default|before (?:every|each|any|you)|after (?:every
  |each|any)|whenever|only)
(?:our|the|my|team|project|house) (?:\w+ ){0,2}(?:convention|rule|policy|standard|guideline|practice|style|workflow
  |naming|style guide)(?: \w+){0,3} (?:is|are|says|requires|:)
(?:convention|rule|policy|standard|requirement)s?: \S
we (?:don'?t|do not|never|cannot|can't) (?:ever )?(?:use|allow|want|commit|push|merge|deploy|write|store|log|test
  |run|support|ship|release|mock|squash|rebase)
^(?:yes|yeah|no|right|exactly)[, ]+(?:always|never|only) \w+
(?:as a|by) (?:rule|convention|policy|default)
(?:is|are) (?:required|mandatory|forbidden|banned|not allowed|prohibited|off limits|not permitted)
(?:make sure|be sure|ensure) (?:to |that |you |we |it |all |every )
(?:we|our \w+s|the \w+s|all \w+) (?:use|deploy|release|merge|tag|format|lint|test|store|keep|name|write|build|publish
  |run|ship|review|squash|track|log|manage|host|pin|follow|target|support|require)s? (?:\w+ ){0,3}(?:only|from|with
  |via|through|on|in|under|by|as|for|using|at|to)\b
(?:should|must|needs? to|has to|have to) (?:always|never|only) \w
(?:\w+s should|must|need to|have to) (?!.{0,40}\b(?:by|before|until) (?:the |end|next|mon|tue|wed|thu|fri
  |\d))(?:not )?
  (?:be|live|go|use|have|start|end|pass|stay|match|follow|include|contain|return|run)
""",
    "lesson": r"""
(?:is|are|was|were|gets?|got) (?:\w+ )?(?:slow|red|broken|failing|flaky|empty|wrong|missing|stuck|off|late|stale
  |cached) because\b
^what (?:fixed|solved|cured|made|helped|worked|broke|did the trick|was missing|went wrong)\b.{1,60}?(?::| was | is )
(?:worth|good|important|useful) (?:remembering|noting|knowing|to (?:know|remember|keep in mind))
(?:is|are) (?:an? |always )?(?:\w+ ){1,3}until (?:shown|proven|proved|found|known) (?:otherwise|innocent|wrong)
(?:lesson|takeaway|gotcha|pitfall|moral|learning)s?(?: \S+){0,4}: \S
(?:fail(?:s|ed)?|broke|crash(?:es|ed)?|hung|hangs) (?:because|since|as|due to) \w
(?:returned|returns|gave|gives|read|reads|was|were|got|sent|loses|lost) .{1,60},? (?:because|since)\b
(?:that'?s|this is|which is) why\b
(?:i|we)(?:'ve| have)? (?:just |also |really |finally |recently )?(?:learn(?:ed|t)|found out|figured out|discovered
  |reali[sz]ed|noticed)
(?:it )?turn(?:s|ed) out
(?:the )?(?:actual |real |main |underlying )?(?:root cause|problem|issue|bug|culprit|cause|fix|solution|trick
  |workaround|reason|error|failure|gotcha|catch)(?: \w+){0,4} (?:is|was|were|turned out|came from|lies)\b
(?:caused|fixed|solved|resolved|triggered|worked around) (?:by|with|it by|this by|that by)
(?:lesson|takeaway|gotcha|pitfall|learning|caveat)s?(?: learned)?(?::| is| was| here)
(?:next time|in hindsight|in retrospect|the hard way|should have|shouldn'?t have|my mistake was)
(?:fails?|breaks?|crash(?:es|ed)?|hangs?|failed|broke|hung|works?|worked)(?: \w+){0,6} (?:unless|because|only (?:if
  |when|with|after)|without|until|due to)
(?:taught|teaches) (?:me|us)
(?:only works?|does(?:n'?t| not) work|won'?t work|never works)(?: \w+){0,4} (?:if|when|with|on|unless|because|after
  |without)
""",
    "goal": r"""
^(?:so |then |ok,? )*let'?s (?:aim|shoot) for\b
(?:must|has to|have to|needs? to|should) be (?:\w+ )?(?:live|done|ready|out|finished|shipped|released|complete
  |in place) (?:by
  |before|on|until)\b
(?:i|we)(?:'m| am|'re| are| was| were)? (?:also |really |currently |still |now |just |both |actually |hopefully )?
  (?:plan(?:ning)?|hop(?:e|ing)|aim(?:ing)?|want(?:ing)?|intend(?:ing)?|look(?:ing)? forward
  |think(?:ing)? (?:of|about)|going(?! to (?:the|a|our|my)\b)|trying|try|dream(?:ing)?|wish|working|excited|eager
  |determined|considering
  |saving up|gonna|looking)
  (?: (?:to|of|on|for|about|at|into|towards?|\w+ing)\b)
(?:i|we)(?:'m| am|'re| are) (?:also |currently |now )?planning (?:a|an|the|our|my)
(?:i|we)(?:'m| am|'re| are) (?:also |really |currently |still |now |just |both |actually )?(?:training|preparing
  |studying|practi[sc]ing|applying|saving) (?:up )?for
(?:i|we)(?:'d| would) (?:really |also )?(?:love|like) (?:to|for)
(?:my|our|the)(?: \w+){0,2} (?:goals?|plans?|dreams?|aims?|target|objective|deadline|milestone|ambition|next step
  |priority)\b(?! (?:is|was|has been|are) (?:now |already |finally )?(?:done|met|reached|achieved|over|finished))
^(?:gonna|going to|hoping to|planning to|planning on|trying to|want to|looking to|thinking of|working on)
(?:i|we)(?:'ll| will) (?:be )?(?:\w+ )?(?:launch|release|start|finish|move|visit|travel|ship|submit|open|publish
  |apply|take|join|begin|present|go|attend|host|learn)
(?:deadline|due|release|launch|deliver|ship|finish|done)(?: \w+){0,4} (?:by|on|before|until
  |next) (?:the )?(?:end of|mon|tues|wednes|thurs|fri|satur|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec
  |next|tomorrow|q[1-4]|\d)
""",
    "correction": r"""
^(?:no|nope|nah|sorry|wait|hm+)[,.! ]+not \S
(?:switch|migrat|mov|chang|renam|upgrad|convert|port)(?:ing|ed|e)? .{0,60}?from .{1,60} to
(?:replac|swapp|supersed)ing .{1,60} (?:with|by|for)
^(?:and |so )?(?:what|everything|anything) (?:i|we|you|he|she|they|\w+) (?:said|told|wrote|agreed|decided|mentioned
  |noted)
  \b.{0,120}(?:no longer|any ?more|void|wrong|outdated|obsolete|does(?:n't| not))
^(?:no|nope|nah|wait|sorry|hold on|hmm)(?:,? no)?[,.!:;\-–— ]+(?:(?:that'?s|it'?s|this is) (?:not|wrong|incorrect)
  |actually
  |i (?:meant|said|mean|want)|not|use|we|it|the|don'?t|wait|make|please|my|always|only|never|instead|in fact|he|she
  |they|sorry)
^(?:well |but |oh |hmm |ah )?(?:,? )?actually[, ]
(?:that|this|it)(?:'s| is| was) (?:not (?:right|correct|true|what i)|wrong|incorrect|outdated|no longer|a mistake
  |a misunderstanding)
you(?:'re| are)? (?:mis(?:understood|read|taken|heard)|wrong|got (?:it|that|this) wrong)
i (?:meant|didn'?t mean|didn'?t say|did not say|misspoke|was wrong|never said)
^(?:correction|scratch that|never ?mind that|ignore (?:that|what i said|my (?:last|previous))|forget (?:that
  |what i said)|strike that|my mistake|my bad|on second thought)
(?:changed (?:my|our) minds?|change of plans?|plans? (?:have |has )?changed)
(?:switched|migrated|moved|changed|renamed|upgraded|downgraded|converted)(?: \w+){0,3} from .{1,60} to
(?:no longer|not (?:\w+ ){0,3}any ?more|isn'?t \w+ any ?more|don'?t \w+ (?:\w+ )?any ?more)
(?:replaced|swapped|superseded) .{1,60} (?:with|by|for)
(?:is|are|was|it'?s|use|uses|want|live|lives|called|named) not
  (?: (?:in|at|on|from|via|with|by|for|a|an|the|my|our|\S{0,20}[\d/_.]\S{0,20})) .{0,40}?
  (?:,? but| ?[,;] ?(?:it'?s|use|they)) \S
used to .{1,60}(?:but|,) (?:we |i |it |they )?now
instead of .{1,60} (?:now|from now on)
(?:isn'?t|is not|aren'?t|are not) \S{1,30}(?: \S{1,20})?, (?:it'?s|they'?re|rather)
""",
    "fact": r"""
^(?!(?:this|that|it|there|he|she|they|who|what)\b)(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)? (?:now |also
  |still |only )?(?:works (?:at|for|in|from|on)|studies|teaches|speaks|comes from|was born|moved to|is (?:my|our) \w+)\b
i (?:always |mostly |only |usually )?(?:use|work|code|develop) (?:in|with|on|from|\w+)\b
(?:image|version|customer|client|contact|owner|lead|designer|reviewer|vendor|supplier|linter|formatter|framework
  |database|db
  |language|compiler|editor|shell|os|host|region|branch|registry|bundler
  |queue|broker
  |orm|runner|package manager|url|endpoint|domain|port|repo|repository|licen[cs]e|stack|back ?end|front ?end
  |platform|time ?zone
  |tracker|board|wiki|dashboard) is (?!(?:\w+ )?(?:broken|down|slow|failing|wrong|weird|full|empty|stuck|not|gone
  |missing|back|green
  |red|fine|ok|still|again)\b)\S
(?:go|goes) (?:through|via|over)\b
^(?:this|it|ours)(?:'s| is) an? (?:\S+ ){1,4}(?:project|app|repo|service|library|package|monorepo|codebase|game|site
  |cli|plugin
  |firmware|novel|book|thesis|paper)\b
(?:\w+ and i|i and \w+) (?:do|own|handle|take|lead|run|cover|share)\b
(?:does|takes|runs) (?:the|all|every) \w+s\b
(?:\w+) (?:owns|leads|maintains|manages|handles|looks after|takes care of|signs off|covers)\b
(?:expires? after|times? out after|(?:is|are) (?:fixed at|capped at|set to|kept for|left out|the (?:label|key
  |default|source
  |target|owner|primary \w+|single \w+))|exports?|lasts? (?:from|until|for)|goes? to|ships? with|stays? in)
(?:i(?:'m| am)) (?:on|in) (?:the )?(?:\w+ ){0,3}(?:team|squad|group|crew|department|call|duty)
(?:my|our) (?:\w+ ){0,2}(?:shift|rotation|turn|on-call|vacation|holiday|desk|office)\b
(?:my name is|i live|i work|i was born|i come from|i'm from|i am from|i study|i own|i have (?:a|an|one|two|three
  |four|\d+|no)|i(?:'m| am) (?:a|an|the|in charge|responsible|based) \w+)
my (?:\w+ )?(?:wife|husband|partner|son|daughter|kids?|dog|cat|pet|boss|manager|team|birthday|mother|mom|father|dad
  |sister|brother|email|time ?zone|company|address|phone|job|role|laptop|name)
(?:lives?|is|are|sits?|runs?|resides?|located|stored|hosted|deployed|kept|found|defined|documented|implemented
  |configured|listens?) (?:\w+ )?(?:in|at|on|under|inside|behind|within|against|every) \S
we (?:use|run|have|host|own|support|target|maintain|rely on)
(?:is|are|takes?|(?<!the )lasts?|costs?|weighs?|has|have) (?:about |around |at least |at most |up to |only )?(?:\d\w*
  |one
  |two|three|four|five|ten)
(?:our|my|the) (?:\w+ ){1,3}(?:owns?|handles?|leads?|manages?|maintains?|reviews?|approves?)
(?:is|are) (?:called|named|written in|owned by|based on|built (?:with|on)|maintained by|generated (?:by|from)
  |responsible for|read-only|deprecated|encrypted|limited to|in charge of)
(?:uses|requires|depends on|supports|belongs to|points to|listens on|expires|consists of|contains|stands for
  |refers to|reports to|starts at|ends at|closes at|opens at)
""",
    "hypothetical": r"""
^(?:if|imagine|suppose|assuming|what if|maybe|perhaps|possibly|in case|say)
(?:might|maybe|perhaps|possibly|i guess|i suppose|not sure|i wonder|could be|may be|i think maybe|probably not)
""",
    "self": r"""
(?:i|i'm|i've|i'd|i'll|im|ive|me|my|mine|myself|we|we're|we've|we'd|we'll|our|ours|us)
""",
}
