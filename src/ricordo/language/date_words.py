"""The calendar's words in each language: weekdays, months, units, and days named by their distance from today."""

from collections.abc import Mapping

__all__ = ["DAY_WORDS", "MONTHS", "NUMBERS", "PERIOD_WORDS", "UNITS", "WEEKDAYS"]


def _number_words(*rows: str) -> Mapping[str, int]:
    """Number the words of each row by their place; words joined by a slash share one."""
    return {word: at for row in rows for at, group in enumerate(row.split()) for word in group.split("/")}


WEEKDAYS: Mapping[str, int] = _number_words(
    "monday/mon tuesday/tue/tues wednesday/wed thursday/thu/thur/thurs friday/fri saturday/sat sunday/sun",
    "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag",
    "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "lunes martes miércoles jueves viernes sábado domingo",
    "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
)
"""Weekday word to its number, Monday 0."""

MONTHS: Mapping[str, int] = {
    word: at + 1
    for word, at in _number_words(
        "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep october/oct "
        "november/nov december/dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ).items()
}
"""Month word to its number, January 1."""

DAY_WORDS: Mapping[str, int] = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "yesterday": -1,
    "last night": -1, "tomorrow": 1, "tomorrow morning": 1, "tomorrow afternoon": 1, "tomorrow evening": 1,
    "tomorrow night": 1, "yesterday morning": -1, "yesterday afternoon": -1, "yesterday evening": -1,
    "day before yesterday": -2, "day after tomorrow": 2,
    "heute": 0, "gestern": -1, "vorgestern": -2, "übermorgen": 2,
    "aujourd'hui": 0, "hier": -1, "avant-hier": -2, "demain": 1, "après-demain": 2,
    "hoy": 0, "ayer": -1, "anteayer": -2, "pasado mañana": 2,
    "oggi": 0, "ieri": -1, "domani": 1, "dopodomani": 2,
    "hoje": 0, "ontem": -1, "anteontem": -2, "amanhã": 1,
    "今天": 0, "昨天": -1, "前天": -2, "明天": 1, "后天": 2, "昨晚": -1,
    "今日": 0, "昨日": -1, "一昨日": -2, "明日": 1, "明後日": 2,
}  # fmt: skip
"""Phrase to its distance from today in days; "the other day" names no day and is left out."""

PERIOD_WORDS: Mapping[str, tuple[str, int]] = {
    "letzte woche": ("week", -1), "nächste woche": ("week", 1), "diese woche": ("week", 0),
    "letzten monat": ("month", -1), "nächsten monat": ("month", 1), "letztes jahr": ("year", -1),
    "nächstes jahr": ("year", 1),
    "la semaine dernière": ("week", -1), "la semaine prochaine": ("week", 1), "le mois dernier": ("month", -1),
    "le mois prochain": ("month", 1), "l'année dernière": ("year", -1), "l'an dernier": ("year", -1),
    "l'année prochaine": ("year", 1),
    "la semana pasada": ("week", -1), "la próxima semana": ("week", 1), "el mes pasado": ("month", -1),
    "el próximo mes": ("month", 1), "el año pasado": ("year", -1), "el próximo año": ("year", 1),
    "la settimana scorsa": ("week", -1), "la prossima settimana": ("week", 1), "il mese scorso": ("month", -1),
    "il prossimo mese": ("month", 1), "l'anno scorso": ("year", -1), "l'anno prossimo": ("year", 1),
    "semana passada": ("week", -1), "próxima semana": ("week", 1), "mês passado": ("month", -1),
    "próximo mês": ("month", 1), "ano passado": ("year", -1), "próximo ano": ("year", 1),
    "上周": ("week", -1), "下周": ("week", 1), "本周": ("week", 0), "这周": ("week", 0), "上星期": ("week", -1),
    "下星期": ("week", 1), "上个星期": ("week", -1), "下个星期": ("week", 1),
    "上个月": ("month", -1), "下个月": ("month", 1), "去年": ("year", -1),
    "明年": ("year", 1),
    "先週": ("week", -1), "来週": ("week", 1), "今週": ("week", 0),
    "先月": ("month", -1), "来月": ("month", 1), "昨年": ("year", -1),
    "来年": ("year", 1),
}  # fmt: skip
"""Phrase to its unit and its distance from the current one."""

UNITS: Mapping[str, str] = {
    "day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month", "months": "month", "year": "year",
    "years": "year", "yr": "year", "yrs": "year", "weekend": "weekend", "weekends": "weekend",
    "tag": "day", "tagen": "day", "tage": "day", "woche": "week", "wochen": "week", "monat": "month",
    "monaten": "month", "jahr": "year", "jahren": "year",
    "jour": "day", "jours": "day", "semaine": "week", "semaines": "week", "mois": "month", "an": "year", "ans": "year",
    "día": "day", "días": "day", "semana": "week", "semanas": "week", "mes": "month", "meses": "month", "año": "year",
    "años": "year",
    "giorno": "day", "giorni": "day", "settimana": "week", "settimane": "week", "mese": "month", "mesi": "month",
    "anno": "year", "anni": "year",
    "dia": "day", "dias": "day", "mês": "month", "ano": "year", "anos": "year",
    "天": "day", "周": "week", "个月": "month", "年": "year", "日": "day", "週間": "week", "か月": "month",
}  # fmt: skip
"""Unit word to day, week, weekend, month or year."""

NUMBERS: Mapping[str, int] = {
    **_number_words("zero one two three four five six seven eight nine ten eleven twelve"),
    **_number_words("null ein/eine/einem/einer zwei drei vier fünf sechs sieben acht neun zehn"),
    **_number_words("zéro un/une deux trois quatre cinq six sept huit neuf dix"),
    **_number_words("cero un/una/uno dos tres cuatro cinco seis siete ocho nueve diez"),
    **_number_words("zero un/una due tre quattro cinque sei sette otto nove dieci"),
    **_number_words("zero um/uma dois/duas três quatro cinco seis sete oito nove dez"),
    **_number_words("零 一 二/两 三 四 五 六 七 八 九 十"),
    "a": 1, "an": 1, "couple": 2,
}  # fmt: skip
"""Number word to its value; "a few" and "several" are no numbers and stay unresolved."""
