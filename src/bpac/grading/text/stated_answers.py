"""Sentences that state the answer ("So the answer is …") or choose an option ("I would go with C.")."""

import re

from bpac.grading.text.normalized_text import without_markup

_THUS = r"(?:(?:so|thus|therefore|hence|then|in conclusion|finally|consequently)\b,?[ \t]{1,4}(?:and[ \t])?)?"
_KIND = r"(?:(?:(?:final|correct|right|best|short)[ \t])?answer|(?:correct|right|best)[ \t](?:option|choice))"
_COLON = r"(?=[ \t*_]{0,8}[:：=])"
_STATEMENT = (
    rf"{_THUS}(?:here(?:['’]s|[ \t]is)[ \t])?(?:(?:the|my|our)[ \t])?{_KIND}"
    rf"(?:[ \t](?:is|would[ \t]be|must[ \t]be)(?![\w'])|{_COLON})"
    r"|(?:(?:also|somit|daher),?[ \t])?die[ \t](?:richtige[ \t])?antwort[ \t](?:ist|lautet)(?!\w)"
    r"|la[ \t](?:bonne[ \t])?réponse[ \t]est(?!\w)|la[ \t]respuesta(?:[ \t]correcta)?[ \t]es(?!\w)"
    r"|la[ \t]risposta[ \t]è(?!\w)|a[ \t]resposta[ \t]é(?!\w)"
    rf"|(?:antwort|réponse|respuesta|risposta|resposta|ответ){_COLON}"
    rf"|(?:所以)?(?:正确)?答案(?:是|为|{_COLON})|答え(?:は|{_COLON})"
)
# Only the beginning of a sentence can state an answer: "I hope this answer is helpful" does not.
_CUE = re.compile(
    rf"(?:^|(?<=[.!?:,。！？，])[ \t]{{0,4}})[*_#> \t]{{0,8}}(?:{_STATEMENT})[ \t*_]{{0,8}}(?P<colon>[:：=])?",
    re.IGNORECASE | re.MULTILINE,
)
_WORDS = ("answer", "option", "choice", "antwort", "réponse", "respuesta", "risposta", "resposta", "ответ", "答")
# Without a colon, lower-case words state an answer only if they are one of these: "the answer is based on …" does not.
_CLOSED = re.compile(r"(?:yes|no|true|false|valid|invalid|none|both|neither|plausible|implausible)\b", re.IGNORECASE)
# "If it rains, the answer is …" does not state the answer; "Since it rains, the answer is …" does.
_REASON = re.compile(r"[*_#> \t]{0,8}(?:since|because|as|da|weil|puisque)\b", re.IGNORECASE)
_ITEM = re.compile(r"[*_#> \t]{0,8}(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.):]|[-*•])[ \t]")
_CHOICE = re.compile(
    rf"{_THUS}(?:I(?:['’]d|['’]ll|[ \t]would|[ \t]will)?[ \t](?:go[ \t](?:with|for)|choose|pick|select|say|answer"
    rf"|opt[ \t]for)"
    rf"|I['’]m[ \t]going[ \t]with|my[ \t](?:choice|pick|vote)[ \t]is|it(?:['’]s|[ \t]is|[ \t]must[ \t]be)"
    rf"|(?:the[ \t])?{_KIND}(?:[ \t]is)?)[ \t](?:(?:option|choice|answer)[ \t])?\(?([A-Z])\)?[.!]?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]|\n")
_STOPS = re.compile(r"[.!?。]")
_ELSEWHERE = re.compile(r"\b(?:above|below|follow(?:s|ing)|earlier|previous(?:ly)?|see)\b", re.IGNORECASE)
# How many characters before a statement are read, and the longest sentence that can choose an option.
_CONTEXT, _LONGEST_CHOICE = 400, 80


def stated_answers(text: str) -> list[str]:
    r"""The answers that a text states, in order; each one reaches to the next statement or to the end of the text.

    >>> stated_answers("So the answer is 4.\nIt is even."), stated_answers("I hope this answer is helpful.")
    (['4.\nIt is even.'], [])
    """
    folded = text.casefold()
    if not any(word in folded for word in _WORDS):
        return []
    cues, line, seen = [], 0, 0
    for cue in _CUE.finditer(text):
        # Searching from the last cue keeps this linear: a line may contain thousands of these words.
        line = max(line, text.rfind("\n", seen, cue.start()) + 1)
        seen = cue.start()
        if _states(text, cue, line):
            cues.append(cue)
    stops = [*(cue.start() for cue in cues), len(text)][1:]
    answers = [
        _without_half_bold(cue[0], text[cue.end() : stop].strip()) for cue, stop in zip(cues, stops, strict=True)
    ]
    return [answer for answer in answers if answer]


def _without_half_bold(cue: str, answer: str) -> str:
    """The answer without the rest of bold type that began in the cue, as in "**Answer:** 4" and "**Answer: 4**"."""
    if cue.count("**") % 2:
        return answer[2:].lstrip() if answer.startswith("**") else answer.removesuffix(".").removesuffix("**").rstrip()
    return answer


def chosen_option(text: str) -> str | None:
    """The option that the last sentence of a text chooses; ``None`` if it chooses none or an earlier one does too.

    >>> chosen_option("B is too small. I would go with C."), chosen_option("I would not go with C.")
    ('C', None)
    """
    line = text.rpartition("\n")[2]
    last = _SENTENCE_END.split(line)[-1]
    if _ITEM.match(line) or _choice(last) is None:
        return None
    chosen = [letter for sentence in _SENTENCE_END.split(text) if (letter := _choice(sentence))]
    return chosen[0] if len(chosen) == 1 else None


def points_elsewhere(answer: str) -> bool:
    """Whether a stated answer only refers to another part of the text: "see above".

    >>> points_elsewhere("see above"), points_elsewhere("42")
    (True, False)
    """
    return len(answer) < _LONGEST_CHOICE and bool(_ELSEWHERE.search(answer))


def _choice(sentence: str) -> str | None:
    sentence = without_markup(sentence) if len(sentence) <= _LONGEST_CHOICE else ""
    found = _CHOICE.fullmatch(sentence)
    return found[1] if found and found[1].isupper() else None


def _states(text: str, cue: re.Match[str], line: int) -> bool:
    if _ITEM.match(text, line):
        return False  # one item of a list is only a part of the answer
    begin = max(line, cue.start() - _CONTEXT)
    before = text[begin : cue.start()].rstrip()
    if before.endswith((",", "，")):
        *others, sentence = _STOPS.split(before)
        if not (others or begin == line) or not _REASON.match(sentence.lstrip()):
            return False
    if cue["colon"]:
        return True
    first = text[cue.end() : cue.end() + 20].lstrip()
    # An upper-case letter, a digit, a symbol or a script without upper and lower case.
    return bool(first) and (not first[0].islower() or bool(_CLOSED.match(first)))
