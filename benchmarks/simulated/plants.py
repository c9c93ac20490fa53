"""What is planted in the talk of a year: facts, facts that change, and facts that somebody says again in other words.

Each has an answer that stands nowhere else, so that a hit can be told by its text.
"""

from dataclasses import dataclass

__all__ = ["ASIDES", "CHANGES", "FACTS", "RESTATED", "Change", "Paraphrase", "Plant"]


@dataclass(frozen=True, kw_only=True)
class Plant:
    """What a person says, what somebody asks later, and a text that the answer holds."""

    said: str
    asked: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """A fact that is so until another takes its place."""

    old: Plant
    new: Plant


@dataclass(frozen=True, kw_only=True)
class Paraphrase:
    """Two ways to say one thing, and a word of both."""

    one: str
    other: str
    word: str


def _plants(*rows: tuple[str, str, str]) -> tuple[Plant, ...]:
    return tuple(Plant(said=said, asked=asked, answer=answer) for said, asked, answer in rows)


FACTS = _plants(
    ("We decided to name the first release Dunlin-2204.", "What is the name of the first release?", "Dunlin-2204"),
    ("Remember that the backup bucket is called avocet-7731.", "Which bucket holds the backups?", "avocet-7731"),
    ("I am allergic to cashews.", "What am I allergic to?", "cashews"),
    ("Our invoices must always carry the code KX-4410.", "Which code do invoices carry?", "KX-4410"),
    ("I prefer meetings before ten in the morning.", "When do I prefer meetings?", "before ten"),
    ("We agreed to deploy only from the branch named sandpiper.", "From which branch do we deploy?", "sandpiper"),
    ("My sister Ingeborg lives in Trondheim.", "Where does Ingeborg live?", "Trondheim"),
    ("We decided to keep audit logs for 400 days.", "How long do we keep audit logs?", "400 days"),
    ("We use Caddy as the reverse proxy of the label service.", "What is the reverse proxy of the label service?",
     "Caddy"),
    ("My daughter Philippa plays the bassoon.", "Which instrument does Philippa play?", "bassoon"),
    ("Never run the ledger importer on the last day of a month.", "When must the ledger importer not run?",
     "last day of a month"),
    ("Our support line closes at 17:45.", "When does the support line close?", "17:45"),
    ("We decided that the map renderer has to be written in OCaml.", "What is the map renderer written in?", "OCaml"),
    ("I want to run the Marrakesh marathon next winter.", "Which marathon do I want to run?", "Marrakesh"),
    ("The tariff reader must read its rates from tariffs_v9.csv.", "Which file does the tariff reader read?",
     "tariffs_v9.csv"),
    ("Die Testdaten liegen immer im Ordner zwitscher.", "In welchem Ordner liegen die Testdaten?", "zwitscher"),
)  # fmt: skip
"""Facts that hold for the whole year, worded so that the rules learn them."""

ASIDES = _plants(
    ("The fallback region of the parcel router is eu-north-7.", "What is the fallback region of the parcel router?",
     "eu-north-7"),
    ("I always drink my coffee with oat milk.", "What do I drink my coffee with?", "oat milk"),
    ("The password vault is looked after by Radoslav.", "Who looks after the password vault?", "Radoslav"),
    ("Ich bin gegen Penicillin allergisch.", "Wogegen bin ich allergisch?", "Penicillin"),
)  # fmt: skip
"""Facts that are said by the way: without a model they stand in the transcript alone, where search has to find them."""

_CHANGED = _plants(
    ("We use PostgreSQL for the orders database.", "Which database holds the orders?", "PostgreSQL"),
    ("We migrated the orders database from PostgreSQL to MariaDB.", "Which database holds the orders?", "MariaDB"),
    ("The staging gateway listens on port 8181.", "On which port does the staging gateway listen?", "8181"),
    ("The staging gateway now listens on port 9494.", "On which port does the staging gateway listen?", "9494"),
    ("Our standup is on Tuesday.", "When is our standup?", "Tuesday"),
    ("Our standup is now on Wednesday.", "When is our standup?", "Wednesday"),
    ("We decided to use yarn for packages of the storefront.", "What do we use for packages of the storefront?",
     "yarn"),
    ("We decided to use pnpm instead of yarn for packages of the storefront.",
     "What do we use for packages of the storefront?", "pnpm"),
    ("The release branch is called harvest.", "What is the release branch called?", "harvest"),
    ("From now on the release branch is called orchard.", "What is the release branch called?", "orchard"),
    ("We decided that the rate limit of the search gateway is 120 requests a minute.",
     "What is the rate limit of the search gateway?", "120"),
    ("We changed the rate limit of the search gateway from 120 to 350 requests a minute.",
     "What is the rate limit of the search gateway?", "350"),
    ("Remember that my dentist is Dr. Wieland.", "Who is my dentist?", "Wieland"),
    ("Remember that my dentist is now Dr. Castellane.", "Who is my dentist?", "Castellane"),
    ("Remember that the deploy window of the refund desk is Monday.",
     "When is the deploy window of the refund desk?", "Monday"),
    ("Correction: the deploy window of the refund desk is Friday, not Monday.",
     "When is the deploy window of the refund desk?", "Friday"),
    ("Wir haben beschlossen, für die Builds Jenkins zu nutzen.", "Was nutzen wir für die Builds?", "Jenkins"),
    ("Wir haben die Builds von Jenkins auf Drone umgestellt.", "Was nutzen wir für die Builds?", "Drone"),
    ("We write the price cache in Ruby.", "What is the price cache written in?", "Ruby"),
    ("We no longer write the price cache in Ruby, we switched it to Rust.", "What is the price cache written in?",
     "Rust"),
)  # fmt: skip

CHANGES = tuple(Change(old=old, new=new) for old, new in zip(_CHANGED[::2], _CHANGED[1::2], strict=True))
"""Ten facts that change."""

RESTATED = tuple(
    Paraphrase(one=one, other=other, word=word)
    for one, other, word in (
        ("We deploy on Thursdays only.", "We deploy only on Thursdays.", "Thursdays"),
        ("Please always write commit messages in the imperative.", "Always write commit messages in the imperative.",
         "imperative"),
        ("We use Grafana for the dashboards.", "For the dashboards we use Grafana.", "Grafana"),
        ("I prefer short answers.", "I prefer answers that are short.", "short"),
        ("We agreed that Anneke must send the nightly report.",
         "We agreed that the nightly report must be sent by Anneke.", "Anneke"),
        ("We agreed to review every change within 24 hours.",
         "We agreed that every change is reviewed within 24 hours.", "24 hours"),
    )
)  # fmt: skip
"""What somebody says, what somebody says later that says the same, and a word that stands in both."""
