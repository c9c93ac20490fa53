"""English."""

from ricordo.language.packs import LanguagePack

__all__ = ["PACK"]


PACK = LanguagePack(
    code="en",
    name="English",
    words={
        "passing_word": """
today tonight now currently right yesterday tomorrow morning afternoon evening just already still again yet almost
finally moment meanwhile later soon week lunch coffee tired once first next
""",
        "lasting_word": """
always never ever every each everywhere anywhere only must all any anything nobody everybody usually generally forever
until since otherwise unless instead default per stays keeps longer anymore both exactly
""",
        "hearsay_word": """
says said say thinks thought reckons claims claimed told swears suggested suggests apparently allegedly supposedly
heard wrote asked wants imagine could would maybe perhaps might wish if
""",
        "role_word": """
is are has runs owns leads handles manages works lives does means called named belongs uses goes costs holds
responsible contact our takes needs wants sits pays allergic
""",
        "stop": """
a an the this that these those some any each every either neither both all such no nor not none i me my mine myself we
us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they
them their theirs themselves who whom whose which what when where why how am is are was were be been being do does did
done doing have has had having will would shall should can could may might must ought need'nt cannot and or but if then
else so than as because while until although though unless since whether of at by for with without about against
between among into onto through during before after above below to from up down in out on off over under again further
once upon within toward towards via per here there now just only own same too very also ever even still yet already
quite rather really much many more most other another few less least lot lots i'm i've i'd i'll you're you've you'd
you'll he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd we'll they're they've they'd they'll that's
that'd that'll there's there're here's what's who's who're where's when's why's how's let's isn't aren't wasn't weren't
don't doesn't didn't haven't hasn't hadn't won't wouldn't shan't shouldn't can't couldn't mayn't mightn't mustn't ain't
im ive dont doesnt didnt cant wont isnt wasnt thats whats okay ok yeah yep yes nope oh ah hey hi hello wow um uh hmm
well please thanks gonna wanna gotta kinda sorta y'all something anything everything nothing someone anyone everyone
somebody anybody everybody s t d ll m re ve o y e.g i.e etc vs
""",
        "function": """
a thanks thank great let the and is are was were you your it this that to of for with have has not we they our from i
my in on be do don't should will would can at by always never only use no please what how when if but as an so about
""",
        "generic": """
use call name named thing stuff kind type sort way time make do have get take go come want need tell know give put
happen find think something anything someone anyone somebody anybody people person many much long often usually
currently recently ever different favorite favourite good last first next new main exactly actually mention describe
plan feel keep
""",
        "abbreviation": """
mr mrs ms dr prof st jr vs e.g i.e cf approx fig figs eq nos vol ed eds pp dept est inc ltd co corp jan feb mar apr jun
jul aug sep sept oct nov dec mon tue wed thu fri u.s u.k a.m p.m
""",
        "abbreviation_inside": "mr mrs ms dr prof e.g i.e cf vs fig approx",
        "duration_preposition": "in",
        "not_name": """
i i'm i've i'd i'll monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december mr mrs ms dr prof ok wow hey hi thanks yeah oh omg lol todo fyi api url
""",
        "origin": """
african albanian algerian american arab argentine argentinian asian australian austrian bavarian belgian brazilian
british bulgarian canadian catalan chilean chinese colombian croatian cuban czech danish dutch egyptian english
estonian ethiopian european filipino finnish french german greek hungarian icelandic indian indonesian iranian iraqi
irish israeli italian japanese kenyan korean latvian lebanese lithuanian malaysian mexican moroccan nigerian norwegian
pakistani persian peruvian polish portuguese romanian russian scottish serbian singaporean slovak slovenian spanish
swedish swiss syrian taiwanese thai tunisian turkish ukrainian venezuelan vietnamese welsh agnostic anglican atheist
buddhist catholic christian hindu jewish lutheran mormon muslim orthodox protestant
""",
        "state": """
able afraid alive alone angry asap available away awake aware back better blocked bored broke busy calm cancer capricorn
certain cold confident confused content crazy curious cool dead deaf disappointed done down drunk early excited
exhausted famous fine first free full gemini glad gone good grateful great happy healthy here home honored hopeful hot
hungry ill impressed inspired in late later lazy left lost mad married maybe more nervous new next off okay old online
out over pleased pregnant prepared proud quick ready retired right sad safe scared serious sick single sleepy slow sober
sorry stuck stupid sure surprised thankful thirsty through tired today tomorrow tonight unable undecided unhappy unsure
up upset vegan vegetarian warm weak well wet willing worried wrong young gay lesbian straight bisexual trans left-handed
mother father mom dad mum mama papa student team batman legend superman santa admin analyst architect artist assistant
ceo cfo chef coo cto consultant coach customer data designer dev developer devops director doctor editor engineer expert
founder freelancer frontend backend fullstack head intern junior lawyer lead manager nurse owner principal product
professor programmer project qa researcher sales senior software staff support teacher tester user writer
""",
        "name_like_state": "sterling irving fleming harding manning channing golding browning",
        "same_in_past": """
beat bet bid burst cast cost cut fit hit hurt let put quit read rid set shed shut split spread thrust upset
""",
        "auxiliary_past": "was were had did",
        "light": """
user users person people someone he she they his her their theirs him them its also really very quite generally usually
typically currently now just rather still already much a lot lots kind sort thing things one ones get gets got go
personally strongly actually please have has had will would should can could
""",
        "wish": """
want wants wanted plan plans planned hope hopes intend intends wish wishes aim aims dream dreams going
""",
        "count": "zero one two three four five six seven eight nine ten eleven twelve",
        "join": "and or",
        "before_name": "in on at to from of for with by into since until near",
        "never_noun": """
am ask avoid become begin bring choose don't don’t eat forget get give go hear have keep know lose meet prefer put read
say send sit speak take teach tell think understand write
""",
        "both": "both",
        "homograph": "i me via on an am all per",
        "verb": """
accept add admit agree aim allow answer apply appreciate approve archive argue arrange arrive assign assume attend
backup bake believe belong block book borrow breathe brew bring calculate call camp cancel care carry celebrate change
charge chat check chop clean click climb close collect color colour comment commit communicate compare compete compile
complain complete compose conduct configure confirm connect consider consume contact contain control convert count
cover crave create cross cry dance debug decide dedicate delete deliver depend deploy describe deserve design develop
direct discuss dislike display divide donate doubt download dread dress drop earn edit educate email embrace employ
encourage encrypt enjoy enter escape establish evaluate examine execute expand expect experiment explain explore export
fail fear feature fetch file fill finance finish fish fix focus follow form format garden gather glue grade grill groom
guide handle happen hate help hike hope host hunt identify illustrate imagine import improve include increase insist
inspect inspire install interview introduce invest investigate invite iron jog join judge juggle jump knit know label
lack land last laugh launch learn lecture lift limit lint listen load loan locate lock log look maintain manage mark
marry match matter measure mention mentor merge migrate mind miss mix model monitor move mow nail name nap negotiate
note notice obey object observe obtain offer open operate oppose order organise organize outline oversee owe own pack
paint park parse participate pass paste perform phone photograph pick pin ping plant play plow point possess post pour
practice practise praise pray prefer prepare preserve press print profile program promise protect prove provide publish
pull purchase push query quote raise rank rate reach react realise realize rebase reboot recall receive reckon
recommend recover recycle reduce refactor refer refuse regret reject relax release relocate rely remember remind remove
rename render renew rent repair repeat reply report represent request require rescue research reserve resolve respect
respond rest restart restore restrict retire return review revise reward ride risk roast ruin sail sample save saw scan
schedule screen search seek seem select serve settle sew share shave shop sign simplify skate sketch ski skip slice
smell smile smoke snore solve sort sound speed spell sponsor stare store stretch structure struggle submit suffer
suggest summarise summarize supervise supply support suppose surf survive suspect swap sweat swipe switch tackle talk
target taste telecommute tend thank thrive tidy tolerate touch trace track trade train transfer translate treat trigger
trim trust try tune turn tutor type uncover update upgrade upload use vacuum validate value verify view visit volunteer
vote wait walk warn wash waste watch water wear weave weigh welcome whistle wish withdraw wonder worry wrap yell zoom
""",
        "perception_verb": "feel hear help let make see watch",
        "finite_verb": """
am is are was were be do does did has have had can could will would shall should may might must ought needs need let's
it's he's she's that's there's what's who's here's i'm you're we're they're i've you've we've they've i'll you'll he'll
she'll it'll we'll they'll i'd you'd he'd she'd we'd they'd isn't aren't cannot gets got goes gone says
""",
        "not_verb": """
and but or so as the a an to in on at with for of that who if better left set put own last open like mind order note
file mix head point show work
""",
        "looks_adverb": "ally apply bully comply fly imply multiply rally rely reply supply tally",
        "second_verb": """
bike build commute cook cycle deploy drive go hate keep lead like live look love make manage need plan play run share
sleep spend start stay study take test travel use walk want work
""",
        "adverb": """
always never also just still really usually often sometimes even actually already currently now only recently both
totally definitely rarely generally mostly personally finally ever once then later soon too kinda normally mainly
strongly typically almost hardly maybe perhaps quite rather sooner instead first each all well again always
""",
        "fixed_verb": """
can could will would shall should may might must cannot can't couldn't won't wouldn't shouldn't didn't wasn't hadn't
cant couldnt wont wouldnt shouldnt didnt wasnt hadnt needn't mustn't daren't ain't aint weren't was had did were and or
to the a in on at with for of who that if but so as gonna ought better
""",
        "looks_past": "need feed speed embed exceed proceed succeed heed seed weed shred breed bleed",
        "after_had": "better been",
        "before_base_form": "did do am can could should would will may must shall might",
        "title": "dr mr mrs ms prof st",
        "claim_generic": """
use using used run take make have get go move migrate switch change replace upgrade convert rename we our need want now
new instead longer anymore actually decide decision agree reason today version please user no not never only also too
""",
        "denial": "not never no don't doesn't won't can't cannot isn't aren't mustn't shouldn't without",
        "stance_neutral": """
always usually generally mostly still definitely really do does will can must should is are a an the any ever with
""",
        "stance_synonym": "love",
        "appointment_time": """
january february march april may june july august september october november december monday tuesday wednesday thursday
friday saturday sunday today tomorrow yesterday morning noon afternoon evening night week month year
""",
        "correction_word": "sorry wait mean meant correction oops mistake wrong leave happen",
        "credential_word": """
access account api auth aws bearer basic client cred credential db database default env export github header http https
id key keys login name new old our pass passphrase password pin prod remember safe save secret set staging stripe token
tokens url use user username using value wifi
""",
        "name_part": "of the and",
        "always_grounded": """
user user's users assistant agent ai llm english german french spanish italian portuguese dutch polish russian
ukrainian turkish arabic hebrew hindi chinese mandarin japanese korean swedish danish norwegian finnish czech greek
""",
        "person_word": """
i we you they he she it my our your their his her its me us them the a an user users team assistant is are was were am
be been that this have has had do does did s re ve m
""",
        "denial_word": "not no never none nobody nothing without t cannot dont isnt arent wasnt longer stop stopped",
        "time_word": """
jan january feb february march apr april june july aug august sep sept september oct october nov november dec december
monday tuesday wednesday thursday friday saturday sunday yesterday today tomorrow tonight ago
""",
        "number_word": "one two three four five six seven eight nine ten eleven twelve once twice dozen several",
        "untitled": """
hi hello yes yeah today tomorrow yesterday week month day hour minute monday tuesday wednesday thursday friday saturday
sunday please thank sorry sure okay great nice cool wow really lot bit ask answer question say talk look show check
read write add fix done help work start stop let see hear love like want one two three four both half back still yet
already morning evening night year guess maybe idea job point line lines run runs awesome amazing happy glad excited
tough sound mean important special fun thankful lucky hard always means btw around others something together life
moment part place reall rest end top bottom middle side whole first second third last next
""",
        "determiner": "the our my your his her their its each every",
        "life_verb": "moved born grew used studied learned graduated married divorced retired joined founded adopted",
        "dummy_secret": """
password passwd passphrase passcode pwd pass secret token key apikey accesskey secretkey clientsecret accesstoken
authtoken credential credentials changeme changethis changeit replaceme fillme fillin setme example sample dummy
placeholder redacted removed hidden masked omitted filtered censored test testing demo foo bar baz foobar todo tbd
fixme null none nil undefined void true false yes no on off na empty blank unset default string str text char varchar
bytes int integer number boolean bool object optional required mandatory any unknown value val var variable env input
prompt ask bearer basic digest oauth oauth2 jwt saml ldap sso mfa 2fa bcrypt argon2 argon2id scrypt pbkdf2 sha1 sha256
sha512 md5 base64 hmac hs256 rs256 plaintext plain encrypted hashed generated random secure strong weak valid invalid
incorrect wrong correct missing expired forgotten stored here user admin root
""",
        "not_passphrase": """
add all any are ask asked been before being best better both but can change choose come could did does done down each
enter every everybody few file find first five four get give given goes good has have here how if its keep kept know
known later letter like long lost made make many may more most much never next nobody none nothing only other phrase
pick random same seven several should show shown since six some something sometimes somewhere still take ten than that
their them then there these they think three too two unless until used using was well were what when where which while
who whole why will within without words would write written
""",
        "compound_part": """
able access account admin age aged all always any api app application aware base brand bucket built cased char check
client cloud code coded company config cookie credential credentials cross data date default defined dependent deploy
device double driven end env environment ever exempt extra field file first form format fourth free friendly full
generated github gitlab group half hand hard header hidden high host human input issued key kubernetes last length less
level life line lived local login long low machine made manager name needed never new next non not notch number off old
one only open opt optional out over own part party pass passphrase password plain policy post pre private project proof
proxy public quality rate read real refresh request required reset role root rotated safe saved scope scoped second
secret self semi server service session set setting sha shared short side signed single site sized space specific state
stored store strength string strong style super system team tech temp temporary tenant term test text third three time
tls token top two type ultra under unique unset user value vault verified version visible wallet weak web well wide
word world write wrong year zero dev docker main master mysql postgres prod production redis release secrets stage
staging valid the and for from with but are was has had his her its our out per too via yet you your this that than
then them they into upon must need
""",
        "not_seed": """
and are but did does for from had has her his how into its mine not our out she should than the their them these they
those was were which while who whose why with without words would your yours
""",
        "harmless_name": """
eos bos pad unk mask sep cls special next nextpage page continuation stop start end begin image img audio video max min
num per total last first prev previous input output prompt completion sync cursor resume cancel cancellation pagination
delimiter word sub by com en sur tres over under test no forgot public
""",
    },
    rows={
        "opposites": """
like love enjoy prefer favour favor adore|dislike hate avoid loathe detest despise,
start begin|stop quit end finish|continue, before|after|during, more|less fewer, most|least,
increase raise grow|decrease reduce lower shrink, always|never|sometimes occasionally seldom rarely,
allow permit enable|forbid prohibit deny disable ban, open|close closed, accept approve|reject refuse decline,
add|remove delete drop, buy|sell, lend|borrow, teach|learn, send|receive, win|lose, upgrade|downgrade, join|leave,
hire|fire, married|divorced single widowed engaged, left|right, north|south|east|west, up|down,
big large tall|small little short tiny, long|short, hot warm|cold cool, early|late, old|young new,
good best better|bad worst worse, first|last|second|third, morning|afternoon|evening|night noon,
monday|tuesday|wednesday|thursday|friday|saturday|sunday weekend,
january|february|march|april|may|june|july|august|september|october|november|december,
daily|weekly|monthly|yearly annually|hourly, today|tomorrow|yesterday, winter|summer|spring|autumn fall,
mother mum mom|father dad|sister|brother|son|daughter|wife|husband|aunt|uncle|cousin, dog|cat, tabs tab|spaces space,
dark|light, on|off, with|without, public|private, internal|external, front frontend|back backend, left|stayed,
male man|female woman, vegan|vegetarian, formal|informal casual, verbose detailed|brief concise terse,
sync synchronous|async asynchronous, import|export, input|output, minimum min|maximum max
""",
        "synonyms": """
like love enjoy prefer favour favor fond, live lives reside based, home house, use utilise utilize employ,
work job employed, dislike hate loathe detest, big large, start begin, finish end, buy purchase, speak talk, child kid,
mum mom mother, dad father, daily everyday, always constantly, fast quick quickly, ask request, show display,
short brief concise terse, error mistake, repository repo, database db, configuration config, javascript js,
typescript ts, kubernetes k8s, postgresql postgres, application app, photo picture, car automobile, movie film,
holiday vacation, flat apartment, physician doctor
""",
        "verb_forms": """
arise arose arisen, awake awoke awoken, beat beat beaten, become became become, begin began begun, bend bent,
bind bound, bite bit bitten, bleed bled, blow blew blown, break broke broken, breed bred, bring brought, build built,
burn burnt, buy bought, catch caught, choose chose chosen, cling clung, come came come, creep crept, deal dealt,
dig dug, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen,
feed fed, feel felt, fight fought, find found, flee fled, fly flew flown, forbid forbade forbidden,
forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten, give gave given,
go went gone goes, grind ground, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
kneel knelt, know knew known, lay laid, lead led, lean leant, leap leapt, learn learnt, leave left, lend lent,
light lit, lose lost, make made, mean meant, meet met, overcome overcame overcome, oversee oversaw overseen, pay paid,
prove proved proven, ride rode ridden, ring rang rung, rise rose risen, run ran run, say said, see saw seen,
seek sought, sell sold, send sent, sew sewed sewn, shake shook shaken, shine shone, shoot shot, show showed shown,
shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, slide slid, speak spoke spoken,
spell spelt, spend spent, spin spun, spring sprang sprung, stand stood, steal stole stolen, stick stuck, sting stung,
strike struck, swear swore sworn, sweep swept, swim swam swum, swing swung, take took taken, teach taught,
tear tore torn, tell told, think thought, throw threw thrown, understand understood, undertake undertook undertaken,
wake woke woken, wear wore worn, weave wove woven, weep wept, win won, wind wound, withdraw withdrew withdrawn,
write wrote written, rewrite rewrote rewritten, rebuild rebuilt, redo redid redone, undo undid undone
""",
    },
    tables={
        "choice_place": "1 = the first|first|the first one|former; 2 = the second|second|the second one|latter",
        "factor": "2 = double it|double|double that|twice that|twice as much; 0.5 = halve it|half|half that",
        "weekday": """
0 = monday|mon; 1 = tuesday|tue|tues; 2 = wednesday|wed; 3 = thursday|thu|thur|thurs; 4 = friday|fri;
5 = saturday|sat; 6 = sunday|sun
""",
        "month": """
1 = january|jan; 2 = february|feb; 3 = march|mar; 4 = april|apr; 5 = may; 6 = june|jun; 7 = july|jul;
8 = august|aug; 9 = september|sept|sep; 10 = october|oct; 11 = november|nov; 12 = december|dec
""",
        "day": """
0 = today|tonight|this morning|this afternoon|this evening;
-1 = yesterday|last night|yesterday morning|yesterday afternoon|yesterday evening;
1 = tomorrow|tomorrow morning|tomorrow afternoon|tomorrow evening|tomorrow night; -2 = day before yesterday;
2 = day after tomorrow; 7 = a week today|today week|a week from today;
8 = a week tomorrow|tomorrow week|a week from tomorrow;
14 = a fortnight today|a fortnight from today; 15 = a fortnight tomorrow|tomorrow fortnight|a fortnight from tomorrow
""",
        "weeks_ahead": """
1 = a week on|a week from|one week from; 2 = a fortnight on|a fortnight from|two weeks on|two weeks from
""",
        "weeks_behind": "1 = week; 2 = fortnight",
        "unit": """
day = day|days; week = week|weeks; month = month|months; year = year|years|yr|yrs; weekend = weekend|weekends
""",
        "number": """
0 = zero; 1 = one|a|an; 2 = two|couple; 3 = three; 4 = four; 5 = five; 6 = six; 7 = seven; 8 = eight; 9 = nine;
10 = ten; 11 = eleven; 12 = twelve
""",
        "weekday_side": "-1 = last|past; 0 = this; 1 = coming|this coming; 2 = next",
        "unit_side": "-1 = last|past|previous; 0 = this; 1 = next|coming",
        "distance_lead": "1 = in",
        "irregular": """
child = children; man = men; woman = women; person = people; foot = feet; tooth = teeth; goose = geese;
mouse = mice; life = lives; wife = wives; knife = knives; leaf = leaves; shelf = shelves; half = halves;
self = selves; wolf = wolves; loaf = loaves; thief = thieves; index = indices; matrix = matrices;
vertex = vertices; analysis = analyses; criterion = criteria; phenomenon = phenomena; tie = ties|tying; pie = pies;
die = dying; lie = lying; good = better|best; bad = worse|worst
""",
        "third_person_form": """
is = am; has = have; hasn't = haven't|havent; does = do; doesn't = don't|dont; goes = go; wants to = wanna;
has to = gotta
""",
        "contraction": "is = m|re; has = ve; will = ll; would = d",
        "stance_opposite": """
like = dislike|hate|love; allowed = forbidden; allow = forbid|disallow; enabled = disabled; enable = disable;
required = optional; public = private; true = false
""",
        "verb_of_noun": "fly = flight; arrive = arrival; depart = departure; deliver = delivery; pay = payment",
        "participle": "written = wrote",
        "numeral": """
0 = zero; 0.5 = half; 1 = one; 2 = two; 3 = three; 4 = four; 5 = five; 6 = six; 7 = seven; 8 = eight; 9 = nine;
10 = ten; 11 = eleven; 12 = twelve|dozen; 13 = thirteen; 14 = fourteen; 15 = fifteen; 16 = sixteen; 17 = seventeen;
18 = eighteen; 19 = nineteen; 20 = twenty; 30 = thirty; 40 = forty; 50 = fifty; 60 = sixty; 70 = seventy; 80 = eighty;
90 = ninety; 100 = hundred; 1000 = thousand|grand; 1000000 = million
""",
        "numeral_join": "0 = and|and a",
        "numeral_article": "1 = a|an; 0.5 = half a|half an",
        "measure": """
time 1 = second|seconds|secs; time 60 = minute|minutes|mins; time 3600 = hour|hours|hrs; time 86400 = day|days;
time 604800 = week|weeks; time 1209600 = fortnight|fortnights; time 2592000 = month|months;
time 7776000 = quarter|quarters; time 31536000 = year|years|yrs; EUR 1 = euro|euros; USD 1 = dollar|dollars|bucks;
GBP 1 = pound|pounds|quid; share 1 = percent|per cent; data 1000000 = megabytes|megs|meg;
data 1000000000 = gigabytes|gigs|gig;
data 1000 = kilobytes; length 1 = metre|metres|meters; length 1000 = kilometres|kilometers; degree 1 = degrees
""",
    },
    phrases={
        "open_question": "what|which|who|whose|whom|where|when|how (?:many|much|long|often|old|big|far|high|late|soon)",
        "question_context": r"""
he|she|they|him|her|hers|his|them|their|theirs|it|its|that|those|this|these|both|either|there|enough|too|as well|else
the (?:two|three|same|others?)|ones?
""",
        "evasion": r"""
(?:i |we )?(?:don['’]?t|do not) (?:know|care)|dunno|(?:no|not a) (?:idea|clue)|not sure|(?:it |that )?depends
(?:i['’]ll|i will|let me|i (?:need|have) to) (?:tell|check|ask|look|see|think|find|get|let you)|we['’]ll see|tb[dc]
(?:you )?(?:should |better )?ask \w+|good question|(?:nobody|who) knows|(?:i |we )?haven['’]?t (?:decided|checked)
h+m+|(?:one|a|just a) (?:sec|second|moment|minute)|hang on|hold on|wait|later|not (?:yet|now)|maybe|you decide
""",
        "asked_action": r"""
(?:(?:and|so|then|okay|ok),? )?(?:(?:should|must) (?:i|we)|do we|are we to|am i to) (?P<action>[^?]{3,100}?)\?
""",
        "lead_in": r"""
(?:next|also|besides|furthermore|moreover|in addition|additionally|finally|lastly),
(?:note|noted|memo|reminder|remember|remembered|important|fyi|good to know|(?:to |please )?keep in mind
  |to (?:note|remember)|worth (?:noting|remembering)):
(?:please )?(?:note|remember|keep in mind) that|it (?:should|must) be noted that
it (?:is|was|has been|had been) (?:also )?(?:said|noted|mentioned|stated|agreed|decided|confirmed|established|explained
  |recorded|known) that
""",
        "topic_change": "anyway|by the way|oh and",
        "omitted": r"""
(?:\w+ )?(?:further|more|other|remaining) (?:[\w-]+ )?(?:lines?|rows?|entries|items|pages|words|characters|messages)\b
[\w ,]{0,20}(?:truncated|omitted|cut off|not shown)\b
""",
        "narrated": "the",
        "recurring": "birthday|anniversary|name day|(?:every|each) year|annually|yearly",
        "each_time": r"once|twice|times|hours?|days?|\d+|euros?|dollars?|pounds?",
        "no_date": r"""
here today,? (?:and )?gone tomorrow|(?:today|tomorrow) is another day|no tomorrow|yesterday['’]s news
""",
        "month_begin": r"(?:beginning|start|first days|first weeks?|early)(?: of| in)?(?: the month of)?",
        "month_end": r"(?:end|last days|late)(?: of| in)?",
        "asked_subject": r"""
(?:(?:and|so|ok|okay),? )?(?:(?:what|which|who|when|where|how (?:much|many|long|big|high|old|often))
  (?:['’]s| is| are| was)|what should) (?P<subject>(?:the|our|your|(?-i:[A-Z])[\w-]+['’]s) [^?,;:]{2,60}?)(?: be)?\?
""",
        "pronoun_clause": r"(?:\w+ ){0,3}(?:he|she|it|they)\b",
        "contracted_verb": r"['’]s (?:an?|the|not|in|at|on|got|been|gone|\w+ing|\w+ed)\b",
        "repeated_pronoun": "he|she|it|they",
        "pronoun_subject": r"""
(?:he|she|they|it(?!['’]s (?:me\b|\d))|his|her|their|its)\b(?! or\b)|mine\b|(?:now|then) (?:he|she|it|they)\b
(?:since|from|on|in|at|until|for|every|next|last)(?: [\w'’]+){1,4}? (?:he|she|they)(?:['’]s|['’]re)?\b
(?:you|we|i|nobody|everybody|only \w+(?: can| may| will)?) \w+ (?:(?:it|them|him|her)\b(?! \w+s\b)|that\b(?!\s+\w))
(?:this|that|these|those)(?:['’]s| (?:is|are|was|were|means|has|have|can|will|must|should|needs?|goes|go|one|too))\b
(?:to|with|for|from|by|of|without|according to) (?:him|her|them|it|that)\b
the (?:first|second|third|last|other|next) (?:one|is|are|was|has|must|can)\b
""",
        "program_error": r"""
error|fatal|failed|failure|cannot|can't|could ?n[o']t|unable|denied|refused|closed|invalid|missing|unknown|undefined
unresolved|unsupported|not found|no such|no rule|does not exist|already|required|requires|immutable|protected
conflict|expired|exceeded|no longer|out of|too (?:large|long|many)
""",
        "output_instruction": "assistant|agents?|the user|to fix",
        "problem": r"""
error|fails?|failed|failing|broken|broke|breaks|stuck|crash(?:es|ed|ing)?|dies|refuses|refused|not working|no luck
(?:won|doesn|can|isn|didn)['’]?t (?:work|start|open|load|connect|join|print|boot|build|compile|run|turn|play|save
  |log|find|pair|charge|respond|move|drain)\w*
comes out|nothing happens|(?:says|shows|gives)\W+\w{1,5}-?\d{2,5}
(?:it|site|page|screen|app) (?:just )?(?:says|shows|gives)|an? \d{3,5}|same (?:error|thing|letters|again|message)
""",
        "machine_address": r"""
(?:if|when|whenever) (?:an?|any|some|the|your) (?:(?:ai|llm|digital|virtual|automated)[ -])?(?:assistant|agent|llm|bot
  |ai|language model|copilot|crawler)s?\b(?! (?:asks?|breaks?|fails?))
(?:notes?|message|instructions?|memo|hint|attention|notice|reminder) (?:to|for) (?:the |any |all |an? |your |every )?
  (?:(?:(?:ai|llm|digital|virtual|automated|language)[ -])+(?:assistants?|agents?|bots?|models?|helpers?)|llms?|ai
  |(?:assistants?|agents?|bots?|models?|helpers?) (?:that|who|which|reading|processing|summari[sz]ing))\b
(?:ai|llm|digital|virtual|automated|coding) (?:assistants?|agents?|helpers?|tools?|models?|bots?|systems?)
  (?: \w+){0,4}(?: are (?:to|asked|requested|required)| please|:)
^\W*(?:ai|llm)? ?(?:assistants?|agents?|helpers?|bots?|copilots?)\b(?: (?:reading|processing|visiting|maintaining
  |working|that|who|which|with|using|on)\b[^:.]{0,60})?:
(?:for|to) (?:the |any |all )?(?:ai |llm )?(?:assistants?|agents?|bots?|models?|helpers?) (?:reading|processing|visiting
  |maintaining|handling|parsing|that reads?|who reads?|summari[sz]ing)
(?:ignore|disregard|forget) (?:all |any |your |the )*(?:previous|prior|earlier|above) (?:instructions|prompts?|rules)
""",
        "valid_from": "from|(?:starting|beginning)(?: (?:with|in|on|from))?|as of|effective",
        "valid_since": "since",
        "valid_until": "until|till|up to|through",
        "past_state": "was|were|had|used to",
        "ended_lead": r"""
moved on from|moving on from|done with|rid of|took \w+ off|stopped using|ditched|abandoned
(?:instead|in place) of(?!\s+\w+ing\b)
""",
        "limit": r"""
under|below|at most|up to|(?:no|not) more than|less than|max(?:imum)?|limit(?:s|ed)?|ceiling|cap(?:ped)?|budget|longest
""",
        "ended_tail": r"""
(?:is |are |was |were )?too (?:few|many|short|long|little|much|small|big|busy|late)|any ?more|no longer
(?:is|are) (?:over|off|dead|gone)
""",
        "change_cue": r"""
now|by now|nowadays|no longer|any ?more|no more|instead(?: of)?|rather than|from now on|as of|since|starting|effective
from (?:\w+ ){1,4}on|from (?:today|tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january
  |february|march|april|may|june|july|august|september|october|november|december|next \w+)
(?:switch|migrat|mov|chang|upgrad|downgrad|convert|renam|relocat|replac|swapp|bump|rais|lower|increas|reduc|shift
  |extend|shorten|postpon|push|slipp|cancell?|dropp|retir|promot|reschedul|rebook|rotat)(?:e[ds]?|ed|ing|s)?\b(?: on
  | over| to)?
(?:went|gone|goes|going|comes?|came|is|are|was|were) (?:up|down|back|over|out|off)\b|took over|taken over
  |hand(?:ed|s) over
make (?:it|that)|became|becomes|left|quit|ended|stopped|is gone|are gone|used to|after all|turned out
  |changed (?:my|our) minds?
is over|scrap(?:ped)?|ditch(?:ed)?|got rid of|done with|new(?:ly)?|again|already|finally|this time|actually|correction
""",
        "filler": r"""
yeah|yep|yup|yes|no|nope|well|so|oh|ah|wow|hey|hi|ok|okay|sure|thanks|hmm|haha|lol|actually|anyway|and|but|also
actually,? no|no,? actually|oh no|no,? wait|wait,? no|well,? no|sorry,? no
by the way|btw|hello|definitely|totally|sure thing|lovely|super|wait|hold on|no no|good morning|morning
""",
        "filler_clause": r"""
(?:ah |oh )?so (?:that )?you know(?: [\w'’]+){1,7}, (?=\w)
(?:btw|by the way|scratch that|strike that|on second thought),? (?=\w)
actually (?=(?:the|my|our|we|i|it|he|she|they)\b)
""",
        "announcement_lead": "(?:also|and|oh|ok|okay|then|so|but)[, ]+",
        "announcement": r"""
so (?:that )?you know(?: [\w'’]+){0,3}
(?:good|bad|some) news(?: first)?|for (?:your|the|our|my) (?:planning|calendar|notes?|plan|records?)
(?:just )?(?:one|another|a last|one last|one more)(?: (?:more|other|small|last|quick))?(?: (?:thing|point|note
  |rule))?(?: (?:about|on|for) [\w ]{1,40})?|before (?:you|we) \w+(?: \w+){0,4}
while (?:we're|you're|i'm|we are|you are) (?:at it|there|here)
(?:question|item|point|note|fact|rule|topic|q|no\.?|number|nr\.?) ?#?\d{1,3}
(?:quick|short|small|side) (?:note|question|thing|reminder)|(?:last|first) (?:thing|point)
""",
        "repetition": r"""
(?:as|like) (?:i|we)(?:['’](?:ve|d)| have| had)?(?: just| already)? (?:said|mentioned|noted|wrote|explained
  |told (?:you|everyone|them))(?: (?:before|earlier|already|yesterday|last time|above|previously))?(?:,\s*|\s*:\s+)
""",
        "side_unit": "weekend|week|month|year",
        "month_side": "last|past|this|next",
        "ago": "ago|back|earlier",
        "count_of": "of",
        "from_unit": "days?|weeks?|months?|years?",
        "from_now": "from",
        "from_day": "today|now|tomorrow",
        "ordinal_suffix": "st|nd|rd|th",
        "day_suffix": "st|nd|rd|th",
        "day_of": "of",
        "month_of": "of",
        "year_lead": "in|since|during",
        "duration_lead": r"one|two|three|four|five|six|seven|eight|nine|ten|no|once|twice|first|only|most|best|worst",
        "duration_verb": r"was|were|has|have|had|did|lost|took|went|got|made|wrote|'ve|\w{2,20}ed",
        "weekday_lead": "on",
        "day_time": "morning|afternoon|evening|night|noon",
        "name_particle": "of|the",
        "greeting": "hi|hello|hey|hiya|good (?:morning|afternoon|evening)",
        "greeting_all": "there|all|everyone|team",
        "name_opening": "my name(?:['’]s| is)|(?:please |just |you can )*call me|i go by",
        "name_opening_unsure": "i['’]?m|i am",
        "after_name": "and|from|here|by the way|btw",
        "person_lead": r"""
(?:my|our|his|her|their|your) (?:[\w-]+ ){0,2}(?:wife|husband|partner|fiancée?|son|daughter|kid|baby|sister|brother
 |mother|father|mum|mom|dad|aunt|uncle|cousin|niece|nephew|grandma|grandpa|grandmother|grandfather|friend|neighbou?r
 |colleague|co-?worker|team ?mate|boss|manager|lead|designer|developer|engineer|tester|intern|doctor|dentist|teacher
 |therapist|accountant|lawyer|landlord|landlady|room ?mate|flat ?mate|nurse|trainer|coach|editor),?
(?:mr|mrs|ms|dr|prof)\.?
(?:ask|asked|tell|told|remind|reminded|invite|invited|ping|met|meeting|married|thank|phone|ring|text
 |visit)(?: up)?(?: with)?
(?:say|said|says|listen|talk|talked|wait|answer) to
(?:birthday|wedding|flat|house|handwriting|salary) of
(?:owned|led|approved|reviewed|maintained|signed off|suggested|decided|managed) by
""",
        "person_tail": r"""
(?:said|says|told|tells|asked|thinks|thought|prefers|preferred|wants|wanted|likes|liked|loves|loved|hates|agreed
 |disagreed|decided|insists|insisted|promised|suggested|worries|worried|knows|hopes|lives|lived|is allergic
 |is retired|turns \d|turned \d|was born|got married|is getting married|has (?:a|an) (?:allergy|appointment|birthday))
(?:comes|came|flies|flew|goes|went) (?:back|home|over|in|to|up|along|on|every)
(?:picks up|rings|rang|phones|turns up|moves to|moved to|is (?:back|away|out|off|ill|sick|on (?:\w+ )?(?:holiday
 |leave|vacation)))
(?:works?|worked) (?:at|for|as|from)
(?:approves?|approved|reviews|owns|leads|runs|signs off|took over|takes over|is responsible for
 |is in charge of) (?:the|our|all|on)?
(?:is|was|becomes|became) (?:now )?(?:our|my|their|his|her|the) (?:new |old |former )?(?:[\w-]+ ){0,2}(?:lead|manager
 |owner|designer|developer|engineer|tester|intern|boss|wife|husband|partner|sister|brother|mother|father|cousin
 |friend|neighbou?r|colleague|doctor|dentist|teacher|accountant|contact)
['’]s (?:wife|husband|partner|son|daughter|sister|brother|mother|father|mum|mom|dad|birthday|wedding|allergy|desk
 |salary|flat|phone|idea|proposal|suggestion|opinion|shift|holiday)
""",
        "project_lead": "(?:the |our |my |a )?(?:project|repo|repository|codebase|monorepo)(?: called| named)?",
        "project_tail": "(?:project|repo|repository|codebase|monorepo|app|website|web site)",
        "name_prefix": "pro|anti|non|ex|semi|post|pre|self",
        "state_word": r"\w{3,}ing|\w{2,}[cdfgknpstvxz]ed|\w{3,}(?:ful|less|ous|able|ible|ically|ably)",
        "acknowledgement": r"""
ok|okay|okey|k|kk|okie|alright|all right|got it|gotcha|noted|understood
i see|makes sense|sounds good|will do|fine|cool|sure|thanks|thank you|thanks a lot|thanks so much|many thanks
thank you so much|thank you very much|thx|ty|cheers|yes|yep|yeah|yup|right|great|nice
good|very good|perfect thanks|no problem|np|much appreciated
""",
        "daily": "(?:every|each) day",
        "weekly": "(?:every|each) week",
        "monthly": "(?:every|each) month",
        "yearly": "(?:every|each) year|annually",
        "want": "would (?:like|love) to",
        "silent": "(?:works?|working) as|at present|at the moment|right now|these days|nowadays",
        "negation": "not|no|never|cannot|nor|without|stop(?:s|ped)?|nobody|nothing|no longer|neither",
        "negation_suffix": r"n['’]t(?!\w)",
        "comparison": r"""
\bprefer\w*\b.{1,60}\b(?:to|over)\b|\b(?:rather|more|less|better|worse|\w+er) than\b|\binstead of\b
""",
        "placed": "as|at|by|for|from|in|near|on|over|since|under|with|here|there|abroad|alone|remotely",
        "verb_join": "(?:and|but)(?: (?:also|always|currently|mostly|now|often|still|then|usually))*",
        "verb_object": r"an?|every|it|most|my|our|the|them|\d+",
        "other_subject": r"""
and|because|but|can|could|did|do|does|don['’]t|doesn['’]t|he|help|how|if|it|let|make|may|might|must
or|people|shall|she|should|so|than|that|they|to|we|what|when|where|which|while|who|whose|why|will|would|you
""",
        "first_person_word": "I(?:['’](?:m|ve|ll|d|re))?|im|ive|me|my|mine|myself",
        "listener_own": "your",
        "listener_verb": "you['’](?:re|ve|ll)",
        "listener_place": r"(?<=\b(?:to|of|by|on|at) )|(?<=\b(?:for) )|(?<=\b(?:with|like|from|than|over) )",
        "clause_lead": "and|but|so|because|that|when|while",
        "somebody": r"you|he|she|they|(?:my|our|the)(?:\s+\w+){1,2}",
        "somebody_else": r"they|their|them|he|his|him|she|her|(?:then|and|or|with|than|like) [A-Z]\w+",
        "inverted_verb": "do|have|am|don['’]t|haven['’]t",
        "verb_particle": "up|down|out|off|away|back",
        "behind_object": "and|every|once|twice|again",
        "subject_article": "the|our|my",
        "object_pronoun": "it|them|that|this|him|her",
        "to_object": "the|an?|my|our|your|that|this|those|these|her|him|them|it|me|us",
        "numbered": r"""
part|chapter|volume|book|phase|type|class|section|war|appendix|level|act|step|stage|grade|tier|schedule|figure
""",
        "self_place": r"""
for|by|to|with|of|about|at|on|in|like|as|hurt|teach|taught|treat|ask|asked|tell|told|remind|call
""",
        "noun_mine": "an?|the|this|that|gold|coal|iron|silver|copper|salt|diamond|land|data|old|new|open",
        "exclaimed": r"(?:god|goodness|gosh|bad|word|dear|foot|ass)\b",
        "habit": "always|usually|often|every|never|sometimes|normally|mostly",
        "claim_negation": "no more|not|no|never|cannot|nor|without|stop(?:ped)?",
        "present_negation": r"""
(?:do|does) not|must not|never|no longer|stop(?:ped)?|(?:do|does|wo|ca|must|should|is|are)n['’]t
""",
        "only": "only|just",
        "clause_join": "because|but|since|so|and",
        "change": r"""
(?:switch|migrat|mov|chang|upgrad|downgrad|convert|renam|relocat)(?:e[ds]?|ing|ed)?\b|no longer|from now on
  |instead|replac\w+|any ?more|now\b|used to|(?:is|was|has been) (?:taken|replaced)
""",
        "from": "from",
        "to": "to",
        "instead_of": "not|instead of|rather than|no longer|replac(?:es|ed|ing)",
        "value_lead": "in|at|on|from|via|with|by|for|a|an|the|use|using",
        "home_verb": "lives?|living|(?:has |have )?(?:moved|relocated)|(?:is|are|am) based",
        "now": "now",
        "home_place": "in|to",
        "work_verb": r"(?:works?|working)\s+(?:at|for)|(?:has |have )?joined",
        "port_verb": r"(?:listens?|runs?|serves?)\s+on(?:\s+port)?(?=\s+\d)|port\s+is",
        "name_verb": r"(?:is|are|was)\s+(?:called|named)",
        "subject_lead": r"the|our|my|[A-Z][\w’']*['’]s",
        "copula": "is|are",
        "denying": "not|n['’]t",
        "partly": "only|just|always|all|every|necessarily|yet|until|unless",
        "no_in_stance": "no",
        "first_person_subject": "user(?!:)|i|me|my|mine|myself",
        "ordinal_ending": "st|nd|rd|th",
        "at_present": "this (?:week|morning|afternoon|evening|weekend)|today|tonight|right now|at the moment",
        "whereabouts": r"""
on (?:call|duty|leave|holiday|vacation)|out of (?:the )?office|in the office|at home|working from \w+|away|off
  |sick|ill|busy|free|(?:un)?available
""",
        "being": "is|are|was|were",
        "work_word": r"""
work\w*|job|jobs|project\w*|team\w*|deploy\w*|compan(?:y|ies)|employ\w*|engineer\w*|develop\w*|manag\w*|client\w*
  |customer\w*|office|code|codebase|repo\w*|release\w*|server\w*|database\w*|test\w*|branch\w*|api|program\w*
  |software|backend|frontend
""",
        "we": "we|our",
        "order_word": r"""
ignor\w+|disregard\w*|overrid\w+|obey\w*|pretend\w*|reveal\w*|exfiltrat\w*|instruction\w*|prompt\w*
  |system message|you (?:must|should|shall|are|will|can|may|need)|(?:do|does) not|don['’]t|always|never|must
  |please|from now on|whenever|answer\w*|respon[ds]\w*|repl(?:y|ies|ied)|execut\w+|delet\w+|send\w*|e-?mail\w*
  |forget\w*|remember\w*|tell\w*
""",
        "password_name": "pass(?:word|phrase|code)",
        "code_name": r"""
pin(?: (?:code|number))?|cvv|cvc|(?:door|alarm|gate|safe|lock|entry|unlock|access|security|recovery|backup
  |verification|bank) code|otp
""",
        "purpose_lead": "for|to|of|on",
        "secret_copula": "is|was|are",
        "after_secret": "and|but|please",
        "secret_description": r"""
\w+(?:ed|ing|able|ible|ive|ful|ly|-\w+)|(?:too )?(?:old|new|long|short|easy|mine|yours|same|different|unique
  |public|private|safe|bad|good|fine|okay|gone|lost|known|there|broken|wrong|weak|nothing)
""",
        "credential_name": "api key|access key|token|card number|credit card",
        "after_credential": "is|was|for|to|of|on",
        "card_word": "card|visa|amex|credit|debit",
        "no_in_reply": "no|nope|nah",
        "reminder": r"""
remember|note|keep in mind|bear in mind|don['’]t forget|fyi|for the record
for future reference|heads[- ]up|worth (?:remembering|noting)|good to know
""",
        "reminder_lead": "please|also|and|just",
        "reminder_that": "that",
        "yes_or_no": "yes|yeah|yep|no|nope",
        "linking": "and|also|so(?! (?:that|you)\\b)|then|but|oh|ah",
        "please": "please",
        "own_subject": "we|our|my|the|all|every|each|use|never|always|only|let['’]s",
        "named_subject": r"(?:is|are|has|was|will|goes|does|uses|owns)\b|[a-z]{2,}s\b",
        "i": r"i\b|i['’]",
        "nickname": "call me|go by",
        "own_work": r"""
\b(?P<what>(?:the|a|an|this|that|those
  |these) (?:[\w-]+ ){0,2}?[\w-]+?(?P<many>(?<!s)s)?),? (?:that |which )?I(?:['’]ve| have)?(?: just
  | already)? (?P<verb>[a-z]{2,}ed|wrote|made|built|put in|set up)(?=[.,;:!)]|$)
""",
        "action_pointer": "do(?:es)? (?:that|this|it|so)",
        "no_in_rule": "no|nope|nah",
        "points_back": r"""
it|it's|this|that|that's|they|these|those|because|so|otherwise|which|since|then|there|the reason|the point
  |a (?:plain|bare|simple|mere)|(?:without|after|before) (?:it|that|this)|\w{2,20}ing (?:it|that|this)
  |(?:until|till|since|by) then
""",
        "incomplete": r"""
(?:their|they|he|she|his|her|its)\b|\w+s, (?:not|never) \w|only \w+ (?:for|from|with|in|by|that)\b
  |(?:only|just) the (?:first|last|top|bottom|left|right|next|other)\b
""",
        "points_to_object": r"[A-Z][a-z]+ (?:[a-z]{2,}s|(?:will|must) [a-z]+) (?:it|them)\b",
        "report": r"i\b|i['’]|let me|let['’]s|in summary|this change|(?:fixed|done|added|solved|resolved)\b",
        "to_do": "(?:remember|forget|sure|note|careful) (?:to|not)",
        "rule": "(?:(?:you|we) (?:should|must) )?(?:never|always)",
        "contradiction": r"""
no|nope|nah|wrong|not (?:true|quite|really|it)|that['’]?s (?:not|wrong)|i don['’]t think|keep looking|hm+
""",
        "agreement": r"""
good|great|nice|yes|yep|right|exactly|agreed|perfect|super|ok|okay|true|put|write|note|keep|remember
that was it|that(?:['’]s| is| did| was) (?:it|the trick)|(?:it )?works?|worked|fixed|solved|bingo
(?:and )?there it is|it['’]s (?:back|green|up)
""",
        "introduction": "i['’]m|i am|my name is|this is|it['’]s",
        "introduction_end": "here",
        "yes_no_question": r"""
(?:(?:so|and|ok|okay|then)[, ]+)?(?:do|does|did|is|are|was|were|should|can|will|have|has|must|may)\b
""",
        "next_step": r"""
i|me|we (?:start|proceed|continue|try)|go ahead|which (?:file|one|line|of)|next|error|message|mean|output|log
  |help|can you|could you
""",
        "choice_or": "or",
        "choice": r"""
(?:and |so )?(?:where|which|what) .{0,40}\bshould (?:i|we) (?:put|use|call|name|store|keep|pick|target|write)\b
""",
        "no_in_summary": "no|nope|nah|wrong",
        "objection": "not",
        "question_tag": "right|correct|ok(?:ay)?|yes|no",
        "unmarked_question": r"""
(?:what|where|when|who|why|how|how (?:much|many|long|often|far)|which \w+)
  (?:['’]s| (?:is|are|was|were|do|does|did|can|should))\b
(?:from|to|at|in|on|by|for|with) (?:which|what|whose) \w+ (?:is|are|was|were|do|does|did|can|should)\b
who [a-z]{3,}s\b
""",
        "past_question": r"""
^\W*(?:\w+ )?(?:did|was|were|had)\b|\b(?:when|where|how|why|who|what) (?:did|was|were|had)\b
""",
        "change_in_answer": r"\b(?:mov|switch|migrat|chang|replac)\w*\b|\binstead\b|\bno longer\b",
        "replaced_lead": r"from|instead of|replac\w+|no longer(?: \w+)?|rather than",
        "replacing_stop": "to",
        "replacing_lead": "to|with|by|now|use",
        "ask_number": r"\bhow (?:many|much|often|long|old)\b",
        "ask_time": r"\bwhen\b",
        "ask_time_kind": r"\b(?:what|which) (?:year|month|day|date|time)\b",
        "ask_place": r"\bwhere\b",
        "ask_person": r"\b(?:who|whom|whose)\b",
        "ask_one_time": "how (?:long|often|old)|first|last|latest",
        "ask_first_person": "i|i'm|i've|my|me|mine",
        "named_period": "(?:last|next|this) (?:week|weekend|month|year|night|summer|winter|spring|fall)",
        "place_phrase": "in|at|to|from|near|on",
        "place_article": "the",
        "time_article": "the",
        "before": "before|until|till|by",
        "after": "after|since",
        "month_lead": "in|during|of|last|before|until|till|after|since",
        "name_join": "and|or",
        "pronoun_opening": "it|that|this|they|he|she|those|these|you|yes|no",
        "polite_opening": "please|pls|hey|hi|hello|ok(?:ay)?|so|also|and|now|just|well",
        "question_word": "who|whom|whose|what|which|when|where|why|how|whether|if",
        "question_opening": "who|whom|whose|what|which|when|where|why|how",
        "question_opening_verb": r"(?:is|are|was|were|do|does|did)\b(?!\s+not\b|n['’]t)|any idea\b",
        "inverted_question": r"""
(?:who|what|which|when|where|why|how)(?:\s+\w+)?(?:['’]s|\s+(?:is|are|was|were|do|does|did|can|should))\s+(?:i
  |you|we|he|she|it|they|there|the|a|an|my|our|your|this|that|his|her|their)\b
(?:can|could|would|will|should|shall|have|has|had|may|do|does|did|is|are|was|were|am|don['’]t)\s+(?:i|you|we|he
  |she|it|they|there|any\w*|some(?:one|body))\b
(?:i\s+(?:want|need|would like)|i['’]d like)\s+to\s+know\b|do you know\b
""",
        "memory_request": r"""
(?:tell|show|give|read|find|get|remind)\s+(?:me|us)\b(?!\s+(?:to|that)\b)
(?:list|show|explain|describe|summari[sz]e|recall|look up|search)\b(?!\s+(?:of|is|are|was|were)\b)\s+\S
let (?:me|us) (?:know|see)\b
""",
        "remember_verb": r"""
(?:always\s+)?remember|(?:don['’]t|do not|never) forget|keep in mind|bear in mind|memori[sz]e
""",
        "remember_that": "that|this",
        "remember_clause_verb": r"(?:(?:take\s+|make\s+(?:a\s+)?)?note)",
        "remember_self": "to self",
        "remember_clause_that": "that",
        "clause_subject": "we|you|i|they|he|she|it",
        "memory_of": r"""
(?:(?:that|the|this)\s+)?(?:one |first |last )?(?:time|times|day|days|night|evening|morning|week|weekend|summer
  |year)\s+(?:when|we|i|you|he|she|they)\b
me\W*\Z|us\W*\Z
""",
        "secret_instruction": r"""
(?:your|my|the|some|insert|replace|enter|add|put|use|set|paste|type)[a-z0-9]*(?:key|token|secret|password|pass
  |passwd|here|value|credentials?|this|me|id)[a-z]*
""",
        "sentence_word": r"""
is|are|be|been|was|must|should|can|cannot|may|will|your|my|the|an?|to|at|for|of|in|or|and|not|no|if|required
  |invalid|incorrect|enter|too|least|field|reset|forgot|with|match|short|long|new|confirm|change
""",
        "compound_end": r"""
encoded|encrypted|hashed|based|protected|bits?|bytes?|char(?:acter)?s?|digits?|factor|only|free|way|day|days|hour
  |hours|minute|minutes|second|long|letters?|words?|step|sensitive|insensitive|compatible|managed|backed|signed
  |like|style|specific|related
""",
        "descriptive_ending": "ed|ing|able|ible|ized|ised|ful|less|ly",
        "secret_is": "was|is",
        "secret_is_foreign": "are",
        "secret_is_now": "now|set to",
        "secret_purpose": "for|to|of|on|at|wi-?fi|wlan|root|admin",
        "user_name": "user(?:name|id)?|login|account|e?-?mail",
        "user_and": "and|with",
        "secret_unit": r"""
(?:or more |random )?(?:char|bit|byte|digit|day|hour|minute|second|token|time|letter|symbol|word|long|year|month
  |week|attempt|ms\b|point|percent|%|per\b)
""",
        "secret_lead": "with|set|new|temporary|using",
        "secret_article": "the|my|your|a",
        "secret_column": "password|passwd|passphrase",
        "secret_changed": r"""
(?:[ \t](?:was|is|has been|have been|got))?(?:[ \t]now)?(?:[ \t](?:changed|set|reset|updated))?[ \t]to:?[ \t]
""",
        "use": "use|using",
        "use_as": r"[ \t]as[ \t](?:the[ \t]|my[ \t]|your[ \t]|a[ \t]|our[ \t])?(?:[a-z]{1,12}[ \t])?",
        "seed_phrase_end": "hrase|HRASE|monic|MONIC|words|Words|WORDS",
        "seed_phrase_name": "(?:seed|recovery|backup|mnemonic|secret|wallet)[ _-]?(?:phrase|words)|mnemonic",
        "seed_phrase_is": "is|are",
        "pin_owner": "of|for",
        "pin_is": "is|was",
        "pin_unit": r"digit|character|times|attempts|years?\b",
        "pin_of": "my|sim|card|bank|phone|door",
        "passphrase_is": "is",
        "login_name": "login|log-in|user|username|credentials|creds|account",
        "pin_hint": "pin is|pin code|pin-code|pincode|pin of |pin for ",
    },
    cues={
        "denial": r"""
^(?:no[,.! ]+)?(?:that'?s |this is |it'?s )?not (?:quite )?what (?:i|we) (?:meant|said|asked|wanted
  |want)\b[^,;:]{0,20}$
^(?:(?:no|nope|nah|wait|sorry|hm+)[,.! ]+)?(?:that|this|it)(?:'s| is| was) (?:not (?:right|correct|true|it)|wrong
  |incorrect|outdated|a mistake)(?: \w+){0,2}[.!]*$
^(?:no|nope|nah|wait|sorry|hm+)[,.! ]+not (?!.{0,60}\bbut\b)[^,;:]{1,60}$
^(?:and |so )?(?:what|everything|anything) (?:i|we|you|he|she|they|\w+) (?:said|told|wrote|agreed|decided|mentioned
  |noted)\b.{0,120}(?:no longer|any ?more|void|wrong|outdated|obsolete|does(?:n't| not))
^(?:the |our |my )?(?:old|earlier|previous|former|other) (?:rule|decision|policy|plan|number|value|name|port|limit)\b
  .{0,60}(?:no longer|void|is off|is gone|any ?more|does(?:n't| not))
""",
        "doubt": r"""
^(?:i (?:think|suspect|guess|assume|believe|suppose)|my guess|probably|perhaps|maybe|it (?:looks|seems)|likely)
(?:haven'?t (?:checked|verified|tested|confirmed)|not (?:sure|certain|verified|confirmed)|(?:it|this|that
  |the (?:cause|problem|reason|fix)) (?:might|may|could)|probably|possibly|i suspect|my guess|presumably)
""",
        "heading": r"""
^(?:(?:here are |these are |and |now )?(?:some|our|my|a few|a couple of|the|more|two|three|four|five|a word on)? ?
  (?:\w+ ){0,2}(?:rules?|conventions?|guidelines?|standards?|principles?|preferences?|habits|style|styles)
  (?: (?:for|of|in|about|on|while|here|to|we|before|as)\b[^.:]{0,60})?)[.:]$
""",
        "moment": r"""
^(?:please |and |but |so )*(?:don'?t|do not) \w+(?: \w+){0,4} (?:yet|now|for now|today|tonight)[.!]*$
^(?:(?:please |and |but |so )*(?:don'?t|do not) \w+ (?:it|this|that|these|those|them)\b|never ?mind\b)
^(?:it|there|this \w+|that \w+|the (?:button|icon|page|header|footer|table|box|menu|text|label|link|dialog|function
  |form|field|output|result|image|logo|chart|plot)) (?:also |then )?(?:should|must|has to|have to
  |needs? to)(?! (?:always|never|only))\b
^(?:(?:that |it )?took (?:me|us|a while|ages|forever)\b|it'?s (?:\w+day|late|early|getting late)\b)
(?:can|could|should|might) (?:still )?(?:\w+ ){0,3}(?:today|tonight|this (?:afternoon|morning|evening))\b
^(?:please |and |then |ok(?:ay)?,? |just |yes,? |now |so )*(?:take|put|paste|try|use|ignore|keep|leave|move|copy
  |send|save|store|drop|add|write|make|kill|merge|check|read|open|look at|start|strike|forget|disregard|approve
  |revert|delete|fix|set|change|ship|give|tag|push) (?:it|this|that|these|those|them|all \w+)\b
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
  |get back|try|call|test|have a look|let you know)
^(?:we|i)(?:'ve got| have|'re having|'ve) (?:an?|some|another|one) (?:\w+ ){0,2}(?:incident|outage|problem|issue|bug
  |emergency|situation|regression|fire|question|idea)[.!]*$
^everything (?:is|seems|looks) (?:on fire|broken|down|fine|green|red|ok|okay)
^(?:(?:the|our|my|all) )?(?:[\w-]+ ){0,3}(?:is|are|was|were|looks?) (?:now |still |all |already )?(?:green|red|back
  |down|failing|passing|broken|merged|running again|coming in|deployed|pushed|flaky|stuck|up again|up)\b
^(?:(?:the|our|all) )?(?:[\w-]+ ){1,3}(?:is|are) (?:\w+ ){1,4}again\b
^(?:today|now|tonight|this (?:morning|afternoon|evening))[:,]? (?:i|we|you)?(?: only| just|'ll| will)* ?(?:want|need
  |do|finish|start|look|planning|on to)\b
^(?:sorry[,.]? )?(?:wrong (?:window|chat|channel|tab|thread|person|terminal|repo)|ignore|forget|disregard)\b
^(?:sorry|oops|whoops)[,.! ]+(?:\w+ ){0,2}(?:slipped|wrong|late|typo|mixed)
^(?:(?:ok(?:ay)?,? )?i(?:'ll| will) ask\b|(?:half ?way|almost|nearly) (?:there|done))
^(?:(?:make|leave|give|grant|extend|push|move) it (?:until|to|by|for)\b|start with\b)
""",
        "greeting": r"""
^(?:hey|hi|hello|hiya|howdy|yo|good (?:morning|afternoon|evening|day)|greetings|welcome back)
^(?:long time no|(?:it'?s |so |really |always )?(?:great|good|nice|lovely|awesome|wonderful) (?:to (?:see|hear|meet
  |talk|chat|catch)|seeing|hearing|talking|chatting|catching))
^(?:how (?:are|have|is|'s) (?:you|it|things|everything|life)|what'?s (?:up|new))
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
  |so)|true|fair|good)[\s.!,]*$
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
        "listener": r"(?:you|you're|you've|you'd|you'll|your|yours|yourself|u|ya)",
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
(?:(?:same )?as (?:always|usual)|like (?:always|last time|every time)|(?:still )?too \w+ again|again too \w+)
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
  |coeliac|diabetic|obsessed|crazy about|passionate|a \w+ (?:person|lover|enthusiast|fan)|keen on|interested in)
(?:my|our)(?: \w+){0,2} fav(?:ou?rites?|e)?s?\b
favou?rites? (?:\w+ ){0,3}(?:is|are|was)|(?:my|our) (?:preference|preferred|taste|go-to|passion|hobby|hobbies)
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
  |(?:only|just) the (?:first|last|top|bottom|left|right|next|other)\b
^(?:our |my |the |some )?(?:\w+ ){0,2}(?:style|guidelines?|preferences?|naming|etiquette) ?: ?\S
but never (?:to|in|on|from|with|into)\b
[,;:] (?:so )?(?:please )?(?:always|never) (?!mind\b)\w
(?:from now on|going forward)
(?:everything|anything|nothing|whatever|files) (?:under|in|inside|outside|below) \S+ (?:is|are|gets?|stays?|must|may
  |goes|belongs)\b
nobody (?:\w+ )?(?:touches|edits|pushes|merges|deploys|commits|changes)\b
^(?:\w+ ){0,3}\w+s are (?:always |never |only )?(?:named|prefixed|suffixed|written|spelled|spelt|formatted|rounded
  |tagged|signed|sorted|versioned|exported|squashed|abbreviated|numbered)
^(?:our |the |all |new )?(?:\w+ ){0,2}(?:branches|tags|commits?|tables|columns|fields|files|tests|modules|fixtures
  |classes|variables|migrations|releases|topics|queues|buckets) are (?:called|kept|stored|made|cut)
(?:go|goes|live|lives|belong|belongs) (?:to|into|in|under|at|on) \S{0,60}[/_.]\S
^(?!(?:i|we|he|she|they|it|you)\b)(?:[\w'/-]+ ){1,4}stays? (?:in |as |an? )?(?!.{0,80}\b(?:until|till|tonight|today
  |here|there|home)\b)\S
(?:review|approve|own|check|sign)(?:s)?(?: off)?(?: on)? (?:everything|anything|every|all|any|each|whatever)\b
(?:^|[,;:] |and )we (?:always |never |only )?(?:squash|rebase|lint|tag|sign|pin|format|version|prefix|name|spell
  |indent|review|pair|document|mock|deploy|release|merge|ship|branch|round|deprecate|feature-flag)(?:-\w+)?(?! (?:it
  |that|this|them|the|now|today|tomorrow|tonight|on \w+day\b))
^(?:squash|rebase|fast-forward|merge)(?: merges?| commits?)?(?: only)?[.!]?$
\b(?:one|exactly one|at most \w+|at least \w+|a single) (?:\S+ ){1,4}per \w+
(?:one|two|an?|no) (?:\w+ )?(?:approvals?|reviewers?|reviews?) (?:is|are) (?:enough|required|needed)
^(?:please |and |also |but |so |no,? |instead,? )*(?:use|prefer|take|install|write|compare|check|pin|parse|escape
  |validate|read|render|round|import|export|sort|order|return|raise|throw|catch|format|name|call|spell|encode|hash
  |run|test|build|deploy|merge|tag|stick to)(?! (?:it|this|that|them|these|those)\b)\b.{1,80}?(?:,|;| -| —) (?:not
  |never|no|without|and not|and never|instead of|rather than) \S
^(?!(?:no|yes|it|this|that|he|she|they|i|we|you|but)\b)\w+s(?: (?:in|as|with|for|by) \w+)?, (?:not|never|no) \S
(?:must|mustn't|may not|may only) (?!.{0,40}\b(?:by|before|until) (?:the |end|next|mon|tue|wed|thu|fri
  |\d))(?:not |never |always |only )?(?:finish|fit|stay|remain|keep|land|answer|support|work|never|be|not|carry|hold
  |come|reach|set|call|import|write|read|take|last|compile|build)
^(?:please )?(?:no) (?:\w+ ){0,2}(?:exports?|imports?|dependenc\w+|globals?|mocks?|classes|abbreviations?
  |merge commits?|force.pushes|em dashes|commas?|secrets?|prints?|todos?)\b
(?:needs?|requires?|gets?) (?:an?|one|two|exactly \w+|at least \w+) (?:\S+ ){0,2}(?:changelog|reviewer|reviewers
  |approval|approvals|ticket|test|tests|owner|label|migration|entry|line|description)
(?:we|you|everyone|people|developers|contributors|all \w+|every \w+|each \w+|tests|commits|branches|migrations
  |releases|builds|prs|pull requests)(?: \w+){0,2} (?:always|never|only)(?! (?:see|get|got|saw|seen|need|needed|want
  |know|have|had|find|found)\b)
(?:we|you|they|everyone|people|developers|contributors|all \w+|every \w+|each \w+|tests?|code|commits?|branches|files?
  |migrations?|releases?|builds?|prs?|pull requests|services?|modules?|functions?|names?)(?: \w+){0,2}
  \s(?:must|must not|mustn'?t|should always|should never|should not|have to|has to|need to be|needs to be
  |are not allowed|may only|may not)
^(?:and |also |but |so |btw,? |by the way,? |please |in this (?:repo|project|codebase),? |here,? )*(?:always|never
  |only(?! (?:the|an?|one|two|three|\d+|this|that|my|some|then|after|if|when|because)\b)) \w+
^(?:and |also |but |so |btw,? |by the way,? |please )*(?:do not|don'?t|avoid|stop) (?:ever |using )?(?:use|using
  |commit|push|merge|run|touch|edit|call|import|deploy|add|mock|write|put|store|log|hardcode|hard-code|change|rely
  |install|squash|rebase|force|rename|delete|format|break|mix|test|start|catch|raise|create|import)
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
  |\d))(?:not )?(?:be|live|go|use|have|start|end|pass|stay|match|follow|include|contain|return|run)
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
  |in place) (?:by|before|on|until)\b
(?:i|we)(?:'m| am|'re| are| was
  | were)? (?:also |really |currently |still |now |just |both |actually |hopefully )?(?:plan(?:ning)?|hop(?:e|ing)
  |aim(?:ing)?|want(?:ing)?|intend(?:ing)?|look(?:ing)? forward|think(?:ing)? (?:of|about)|going(?! to (?:the|a|our
  |my)\b)|trying|try|dream(?:ing)?|wish|working|excited|eager|determined|considering|saving up|gonna
  |looking)(?: (?:to|of|on|for|about|at|into|towards?|\w+ing)\b)
(?:i|we)(?:'m| am|'re| are) (?:also |currently |now )?planning (?:a|an|the|our|my)
(?:i|we)(?:'m| am|'re| are) (?:also |really |currently |still |now |just |both |actually )?(?:training|preparing
  |studying|practi[sc]ing|applying|saving) (?:up )?for
(?:i|we)(?:'d| would) (?:really |also )?(?:love|like) (?:to|for)
(?:my|our|the)(?: \w+){0,2} (?:goals?|plans?|dreams?|aims?|target|objective|deadline|milestone|ambition|next step
  |priority)\b(?! (?:is|was|has been|are) (?:now |already |finally )?(?:done|met|reached|achieved|over|finished))
^(?:gonna|going to|hoping to|planning to|planning on|trying to|want to|looking to|thinking of|working on)
(?:i|we)(?:'ll| will) (?:be )?(?:\w+ )?(?:launch|release|start|finish|move|visit|travel|ship|submit|open|publish
  |apply|take|join|begin|present|go|attend|host|learn)
(?:deadline|due|release|launch|deliver|ship|finish|done)(?: \w+){0,4} (?:by|on|before|until|next) (?:the )?(?:end of
  |mon|tues|wednes|thurs|fri|satur|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|next|tomorrow|q[1-4]|\d)
""",
        "correction": r"""
^(?:no|nope|nah|sorry|wait|hm+)[,.! ]+not \S
(?:switch|migrat|mov|chang|renam|upgrad|convert|port)(?:ing|ed|e)? .{0,60}?from .{1,60} to
(?:replac|swapp|supersed)ing .{1,60} (?:with|by|for)
^(?:and |so )?(?:what|everything|anything) (?:i|we|you|he|she|they|\w+) (?:said|told|wrote|agreed|decided|mentioned
  |noted)\b.{0,120}(?:no longer|any ?more|void|wrong|outdated|obsolete|does(?:n't| not))
^(?:no|nope|nah|wait|sorry|hold on|hmm)(?:,? no)?[,.!:;\-–— ]+(?:(?:that'?s|it'?s|this is) (?:not|wrong|incorrect)
  |actually|i (?:meant|said|mean|want)|not|use|we|it|the|don'?t|wait|make|please|my|always|only|never|instead
  |in fact|he|she|they|sorry)
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
(?:is|are|was|it'?s|use|uses|want|live|lives|called|named) not(?: (?:in|at|on|from|via|with|by|for|a|an|the|my|our
  |\S{0,20}[\d/_.]\S{0,20})) .{0,40}?(?:,? but| ?[,;] ?(?:it'?s|use|they)) \S
used to .{1,60}(?:but|,) (?:we |i |it |they )?now|instead of .{1,60} (?:now|from now on)
(?:isn'?t|is not|aren'?t|are not) \S{1,30}(?: \S{1,20})?, (?:it'?s|they'?re|rather)
""",
        "fact": r"""
^(?!(?:this|that|it|there|he|she|they|who|what)\b)(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)? (?:now |also
  |still |only )?(?:works (?:at|for|in|from|on)|studies|teaches|speaks|comes from|was born|moved to|is (?:my|our) \w+)\b
i (?:always |mostly |only |usually )?(?:use|work|code|develop) (?:in|with|on|from|\w+)\b
(?:image|version|customer|client|contact|owner|lead|designer|reviewer|vendor|supplier|linter|formatter|framework
  |database|db|language|compiler|editor|shell|os|host|region|branch|registry|bundler|queue|broker|orm|runner
  |package manager|url|endpoint|domain|port|repo|repository|licen[cs]e|stack|back ?end|front ?end|platform
  |time ?zone|tracker|board|wiki|dashboard) is (?!(?:\w+ )?(?:broken|down|slow|failing|wrong|weird|full|empty|stuck
  |not|gone|missing|back|green|red|fine|ok|still|again)\b)\S
(?:go|goes) (?:through|via|over)\b
^(?:this|it|ours)(?:'s| is) an? (?:\S+ ){1,4}(?:project|app|repo|service|library|package|monorepo|codebase|game|site
  |cli|plugin|firmware|novel|book|thesis|paper)\b
(?:\w+ and i|i and \w+) (?:do|own|handle|take|lead|run|cover|share)\b|(?:does|takes|runs) (?:the|all|every) \w+s\b
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
(?:is|are|takes?|(?<!the )lasts?|costs?|weighs?|has
  |have) (?:about |around |at least |at most |up to |only )?(?:\d\w*|one|two|three|four|five|ten)
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
        "self": r"(?:i|i'm|i've|i'd|i'll|im|ive|me|my|mine|myself|we|we're|we've|we'd|we'll|our|ours|us)",
    },
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
(?:your|the) (?:answer|reply|result|summary|calculation|assumption) (?:is|was|looks) (?:wrong|incorrect|off|mistaken)
you(?:'ve| have)?(?: completely| again)? (?:misunderstood|misread|misheard|mixed up|got (?:it|that|this|me
  |the \w{1,20}) wrong|are (?:wrong|mistaken))
you're (?:wrong|mistaken|mixing)
i (?:didn'?t|did not) (?:mean|ask for|say|want) \S|i (?:meant|said) \S{1,30}(?: \S{1,30}){0,5},? not \S
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
(?:works|worked) (?:perfectly|great|like a charm|exactly)|i (?:really )?(?:like|love) (?:how|the way) you
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
i (?:can'?t|cannot|can not) stand\b|(?:my|our) (?:favou?rite|preferred|preference)\b|i(?:'d| would) (?:much )?rather\b
^(?:please )?(?:always|never) (?:answer|reply|respond|write|use|call me|show|format|explain|give|keep|start|end|ask
  |add)\b
i'm (?:not )?a (?:big |huge )?fan of
.{1,40} (?:annoys?|bothers?|irritates?) me\b
""",
        "identity": r"""
i(?:'m| am) (?:an?|the) (?!bit|little|lot|few|big fan|huge fan|fan|step|mess)(?:[\w-]{1,30} ){0,4}(?:\w{3,20}(?:er
  |or|ist|ian|eer|yst|man|woman)|assistant|accountant|consultant|student|freelancer|intern|nurse|chef|cook|lead|head
  |pilot|coach|cto|ceo|cfo|dba|sre|pm|vegan|vegetarian|parent|architect|dad|mum|mom|postdoc|barista|judge)\b
i work (?:as|at|for|in|on the)\b|my (?:job|role|profession|occupation|day job|title) is\b|my name(?:'s| is) \S
^(?:you can |just |please )?call me (?-i:[A-Z])\w
i(?:'m| am) (?:originally )?from (?-i:[A-Z])
i live in\b|i(?:'m| am) based in\b
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
we(?:'re| are) (?:planning|aiming|hoping) to \w|we (?:plan|aim|hope|want) to (?!know|ask|see|check)\w
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
    mentioned=(
        r"\b(?:if|whether|unless|suppose|imagine|when|says?|said|saying|reads?|prints?|shows?|displays?|logs?"
        r"|called|named|titled|labell?ed|message|error|string|phrase|text|title|headline|word|button|label|prompt"
        r"|quote|quoting|wrote|writes|asks|asked|answered|replied|claims?|thinks|translate|lyrics?|might|maybe"
        r"|perhaps|someone|somebody|users?|customers?|he|she|they|add retry)\b"
    ),
)
