"""What stands at the head of a sentence and says nothing: "Yes, …", "By the way, …", "One more: …".

Invariant: the rest is a tail of the text, and it is never empty unless the text is.
"""

import re

__all__ = ["strip_opener"]

_FILLER = (
    r"(?:yeah|yep|yup|yes|no|nope|well|so|oh|ah|wow|hey|hi|ok|okay|sure|thanks|hmm|haha|lol|actually|anyway|and|but|also|"
    r"actually,? no|no,? actually|oh no|no,? wait|wait,? no|well,? no|sorry,? no|"
    r"by the way|btw|hello|definitely|totally|sure thing|lovely|super|wait|hold on|no no|good morning|morning)"
    r"(?: (?-i:[A-Z]\w{1,20}))?(?:[,!.…]+| - | — )\s*"
    r"|(?:btw|by the way|scratch that|strike that|on second thought),? (?=\w)"
    r"|actually (?=(?:the|my|our|we|i|it|he|she|they)\b)"
)
_ANNOUNCEMENT = (
    r"(?:(?:also|and|oh|ok|okay|then|so|but)[, ]+)?"
    r"(?:(?:good|bad|some) news(?: first)?|for (?:your|the|our|my) (?:planning|calendar|notes?|plan|records?)|"
    r"(?:just )?(?:one|another|a last|one last|one more)(?: (?:more|other|small|last|quick))?"
    r"(?: (?:thing|point|note|rule))?(?: (?:about|on|for) [\w ]{1,40})?|before (?:you|we) \w+(?: \w+){0,4}|"
    r"while (?:we're|you're|i'm|we are|you are) (?:at it|there|here)|"
    r"(?:question|item|point|note|fact|rule|topic|q|no\.?|number|nr\.?) ?#?\d{1,3}|"
    r"(?:quick|short|small|side) (?:note|question|thing|reminder)|(?:last|first) (?:thing|point)|"
    r"kurze notiz[^:]{0,40}|noch (?:etwas|eins|was)|übrigens)"
    r"\s*(?:: | - | — )\s*"
)
_REPETITION = (
    r"(?:as|like) (?:i|we)(?:['’](?:ve|d)| have| had)?(?: just| already)? "
    r"(?:said|mentioned|noted|wrote|explained|told (?:you|everyone|them))"
    r"(?: (?:before|earlier|already|yesterday|last time|above|previously))?(?:,\s*|\s*:\s+)"
    r"|wie (?:schon |bereits )?(?:gesagt|erwähnt)(?:,\s*|\s*:\s+)"
)
_OPENER = re.compile(rf"^(?:{_FILLER}|{_ANNOUNCEMENT}|{_REPETITION})+", re.IGNORECASE)


def strip_opener(text: str) -> str:
    """Return the text without the fillers and announcements it opens with; all of it where nothing else is left."""
    return _OPENER.sub("", text) or text
