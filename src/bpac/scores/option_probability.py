"""Multiple choice: how certain the draft is about its option letter."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bpac.answer import Answer, Token
from bpac.arguments import whole
from bpac.errors import NoLogprobs, NoScore, SettingsError
from bpac.scores.logprobs import token_logprobs, usable
from bpac.scores.score import Needs

# Characters that may surround a letter within its token: " B", "(B", "B.", "**B**".
_AROUND = " \t\n()[]{}*_.,:;\"'`$"


@dataclass(frozen=True, slots=True)
class OptionProbability:
    """One minus the probability of the chosen letter among the option letters listed at its position.

    The chosen letter is the last token of the draft that consists of an option letter; with ``chosen``, the last token
    with the letter that this function returns. Spellings of a letter (``B``, `` B``, ``(B``) are added up. Letters that
    are not among the listed tokens have probability 0.

    Parameters
    ----------
    options: the letters (default: A to J).
    top: number of most likely tokens to request at each position (default: 20).
    chosen: a function that returns the chosen letter of a draft, or none if there is none (default: the last letter).

    >>> place = Token(" B", math.log(0.6), (math.log(0.6), math.log(0.3), math.log(0.1)), (" B", "A", " The"))
    >>> round(OptionProbability()(Answer("Answer: B", tokens=(Token("Answer:", -0.1), place))), 6)
    0.333333
    """

    options: str = "ABCDEFGHIJ"
    top: int = 20
    chosen: Callable[[Answer], str | None] | None = None

    def __post_init__(self) -> None:
        whole(self.top, "top", 1)
        if len(self.options) < 2 or len(set(self.options)) < len(self.options):
            raise SettingsError(f"options must be a string of at least two different letters, got {self.options!r}")

    @property
    def needs(self) -> Needs:
        """Log-probabilities of the tokens and of the most likely tokens at each position."""
        return Needs(logprobs=True, top_logprobs=self.top)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        token_logprobs(draft)
        place = self._place(draft)
        if not place.top:
            raise NoLogprobs(
                f"token {place.text!r} has no list of the most likely tokens: request it with top_logprobs"
            )
        listed = list(zip(place.top_texts, place.top, strict=True))
        # A server may sample a token that is not among the most likely ones.
        if place.text not in place.top_texts:
            listed.append((place.text, place.logprob))
        masses = dict.fromkeys(self.options, 0.0)
        for text, logprob in listed:
            if letter := self._letter(text):
                masses[letter] += math.exp(usable(logprob, text))
        total = math.fsum(masses.values())
        if total == 0.0:
            raise NoLogprobs(f"every option letter at the position of {place.text!r} has probability 0")
        return min(1.0, max(0.0, 1.0 - masses[self._letter(place.text)] / total))

    def _place(self, draft: Answer) -> Token:
        wanted = self.chosen(draft) if self.chosen else None
        for token in reversed(draft.tokens or ()):
            letter = self._letter(token.text)
            if letter and (self.chosen is None or letter == wanted):
                return token
        raise NoScore(f"no token of the draft is one of the option letters {self.options}")

    def _letter(self, text: str) -> str:
        letter = text.strip(_AROUND)
        return letter if len(letter) == 1 and letter in self.options else ""
