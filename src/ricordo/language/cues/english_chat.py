"""English cues that matter between a user and an agent: what passes, what only denies, what is a guess or a heading."""

from ricordo.language.cues.types import CuePack

__all__ = ["CHAT_CUES"]

CHAT_CUES: CuePack = {
    "denial": r"""
^(?:no[,.! ]+)?(?:that'?s |this is |it'?s )?not (?:quite )?what (?:i|we) (?:meant|said|asked|wanted
  |want)\b[^,;:]{0,20}$
^(?:(?:no|nope|nah|wait|sorry|hm+)[,.! ]+)?(?:that|this|it)(?:'s| is| was) (?:not (?:right|correct|true|it)|wrong
  |incorrect
  |outdated|a mistake)(?: \w+){0,2}[.!]*$
^(?:no|nope|nah|wait|sorry|hm+)[,.! ]+not (?!.{0,60}\bbut\b)[^,;:]{1,60}$
^(?:and |so )?(?:what|everything|anything) (?:i|we|you|he|she|they|\w+) (?:said|told|wrote|agreed|decided|mentioned
  |noted)
  \b.{0,120}(?:no longer|any ?more|void|wrong|outdated|obsolete|does(?:n't| not))
^(?:the |our |my )?(?:old|earlier|previous|former|other) (?:rule|decision|policy|plan|number|value|name|port|limit)\b
  .{0,60}(?:no longer|void|is off|is gone|any ?more|does(?:n't| not))
""",
    "doubt": r"""
^(?:i (?:think|suspect|guess|assume|believe|suppose)|my guess|probably|perhaps|maybe|it (?:looks|seems)|likely)
(?:haven'?t (?:checked|verified|tested|confirmed)|not (?:sure|certain|verified|confirmed)|(?:it|this|that
  |the (?:cause|problem|reason|fix)) (?:might|may|could)
  |probably|possibly|i suspect|my guess|presumably)
""",
    "heading": r"""
^(?:(?:here are |these are |and |now )?(?:some|our|my|a few|a couple of|the|more|two|three|four|five|a word on)? ?
  (?:\w+ ){0,2}(?:rules?|conventions?|guidelines?|standards?|principles?|preferences?|habits|style|styles)
  (?: (?:for|of|in|about|on|while|here|to|we|before|as)\b[^.:]{0,60})?)[.:]$
""",
    "moment": r"""
^(?:please |and |but |so )*(?:don'?t|do not) \w+(?: \w+){0,4} (?:yet|now|for now|today|tonight)[.!]*$
^(?:please |and |but |so )*(?:don'?t|do not) \w+ (?:it|this|that|these|those|them)\b
^never ?mind\b
^(?:it|there|this \w+|that \w+|the (?:button|icon|page|header|footer|table|box|menu|text|label|link|dialog|function
  |form
  |field|output|result|image|logo|chart|plot)) (?:also |then )?(?:should|must|has to|have to|needs? to)(?! (?:always
  |never|only))\b
^(?:that |it )?took (?:me|us|a while|ages|forever)\b
^it'?s (?:\w+day|late|early|getting late)\b
(?:can|could|should|might) (?:still )?(?:\w+ ){0,3}(?:today|tonight|this (?:afternoon|morning|evening))\b
^(?:please |and |then |ok(?:ay)?,? |just |yes,? |now |so )*(?:take|put|paste|try|use|ignore|keep|leave|move|copy
  |send|save
  |store|drop|add|write|make|kill|merge|check|read|open|look at|start|strike|forget|disregard|approve|revert|delete
  |fix
  |set|change|ship|give|tag|push) (?:it|this|that|these|those|them|all \w+)\b
^(?:here(?:'s| is| are)|this is) (?:the|a|my|an|your) (?:key|token|password|secret|log|output|error|link|file
  |stack trace)
(?:for this (?:one|time|call|run|once|pr|ticket|task)|(?:just )?this once|just this time|once more|one more time
  |right now)
^(?:i|we)(?:'ve got| have|'ll have| need| must|'ve|'m going| gotta|'d better)(?: got)?(?: to)? .{1,60}\b(?:now|quickly
  |in a (?:minute|moment|bit|sec)|first thing|before (?:lunch|the call|the meeting|i forget))\b
^(?:i |we ).{1,80},? (?:and )?(?:(?:i'll be |will be |i'm )?back (?:in|at|around|by|after)|brb)\b
^(?:i'?m |i am |we'?re )?(?:off to|heading (?:out|home|off)|stepping (?:out|away)|out for|away (?:for|until)|afk|brb
  |grabbing|getting (?:a|some) (?:coffee|lunch|tea))\b
^i(?:'ll| will) (?:\w+ )?(?:check|look|ask|be (?:back|right|there|away|off)|come back|tell|ping|see|read|think
  |get back
  |try|call|test|have a look|let you know)
^(?:we|i)(?:'ve got| have|'re having|'ve) (?:an?|some|another|one) (?:\w+ ){0,2}(?:incident|outage|problem|issue|bug
  |emergency|situation|regression|fire|question|idea)[.!]*$
^everything (?:is|seems|looks) (?:on fire|broken|down|fine|green|red|ok|okay)
^(?:(?:the|our|my|all) )?(?:[\w-]+ ){0,3}(?:is|are|was|were|looks?) (?:now |still |all |already )?(?:green|red|back
  |down
  |failing|passing|broken|merged|running again|coming in|deployed|pushed|flaky|stuck|up again|up)\b
^(?:(?:the|our|all) )?(?:[\w-]+ ){1,3}(?:is|are) (?:\w+ ){1,4}again\b
^(?:today|now|tonight|this (?:morning|afternoon|evening))[:,]? (?:i|we|you)?(?: only| just|'ll| will)* ?(?:want|need
  |do
  |finish|start|look|planning|on to)\b
^(?:sorry[,.]? )?(?:wrong (?:window|chat|channel|tab|thread|person|terminal|repo)|ignore|forget|disregard)\b
^(?:sorry|oops|whoops)[,.! ]+(?:\w+ ){0,2}(?:slipped|wrong|late|typo|mixed)
^(?:ok(?:ay)?,? )?i(?:'ll| will) ask\b
^(?:half ?way|almost|nearly) (?:there|done)
^(?:make|leave|give|grant|extend|push|move) it (?:until|to|by|for)\b
^start with\b
""",
}
