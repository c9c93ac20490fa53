"""English forms that no suffix rule reaches: irregular verbs and plurals.

One table serves two readers: folding (form to base) and the turning of first person into third, which must know whether
a verb is in its past form (kept) or its base form (gets an -s).
"""

__all__ = ["IRREGULAR_FORMS", "IRREGULAR_PASTS", "SAME_IN_PAST"]

# base, past, participle (left out when equal to the past)
_VERBS = """
arise arose arisen|awake awoke awoken|beat beat beaten|become became become|begin began begun|bend bent|bind bound|
bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|
buy bought|
catch caught|choose chose chosen|cling clung|come came come|creep crept|deal dealt|dig dug|draw drew drawn|
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|
find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|
freeze froze frozen|get got gotten|give gave given|go went gone goes|grind ground|grow grew grown|hang hung|hear heard|
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt|learn learnt|
leave left|lend lent|light lit|lose lost|make made|mean meant|meet met|overcome overcame overcome|
oversee oversaw overseen|pay paid|prove proved proven|ride rode ridden|ring rang rung|rise rose risen|run ran run|
say said|see saw seen|seek sought|sell sold|send sent|sew sewed sewn|shake shook shaken|shine shone|shoot shot|
show showed shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|
spell spelt|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|
strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|
tell told|think thought|throw threw thrown|understand understood|undertake undertook undertaken|wake woke woken|
wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn|write wrote written|
rewrite rewrote rewritten|rebuild rebuilt|redo redid redone|undo undid undone
"""
_PLURALS = """
children child|men man|women woman|people person|feet foot|teeth tooth|geese goose|mice mouse|lives life|wives wife|
knives knife|leaves leaf|shelves shelf|halves half|selves self|wolves wolf|loaves loaf|thieves thief|
indices index|matrices matrix|vertices vertex|analyses analysis|criteria criterion|phenomena phenomenon|
ties tie|pies pie|
dying die|lying lie|tying tie|better good|best good|worse bad|worst bad
"""

_SAME_IN_PAST_LIST = """
bet bid burst cast cost cut fit hit hurt let put quit read rid set shed shut split spread thrust upset
"""
SAME_IN_PAST: frozenset[str] = frozenset(_SAME_IN_PAST_LIST.split())
"""Verbs whose past equals their base; a reader cannot tell which is meant."""


def _verb_rows() -> list[list[str]]:
    return [row.split() for row in _VERBS.replace("\n", "").split("|")]


IRREGULAR_PASTS: frozenset[str] = frozenset(form for row in _verb_rows() for form in row[1:] if form != row[0]) | {
    "was", "were", "had", "did",
}  # fmt: skip
"""Past and participle forms that differ from their base."""

# "found" the verb and "left" the side stay what they look like: the verb reading is the commoner one in a chat.
IRREGULAR_FORMS: dict[str, str] = {
    **{form: row[0] for row in _verb_rows() for form in row[1:] if form != row[0]},
    **dict(pair.split() for pair in _PLURALS.replace("\n", "").split("|")),
}
"""Irregular form to base form, all case-folded."""
