"""Spreads answers with the same uncertainty by their length, so that a threshold can accept a part of them.

1. A score with few values, such as a stated confidence, puts many answers on one value. A pair dithers them at random
   (``routing/dithering.py``). In a cascade the length of each answer is known, and shorter answers are likelier right.
2. The spread value is ``U · (1 − w · v)``, where v falls from 1 to 0 with the length. It is a fixed function of the
   answer, so the promise holds for it as for any other value, without a draw (MATH section 15).
3. A value of 1, which is never accepted, stays 1. Values that differ by more than w keep their order.
"""

# 32 levels of ``RelativeLevels``, whose distance is at most 1/1024 of the score.
WIDTH = 32 / 1024
# The log-length at which v is a half: about 150 tokens or characters.
MIDDLE = 5.0


def spread(uncertainty: float, width: float, log_length: float) -> float:
    """The uncertainty of an answer, lowered the more the shorter it is.

    Parameters
    ----------
    uncertainty: score of the answer (U).
    width: by how much it is lowered at most, relative to itself (w).
    log_length: logarithm of one more than the number of tokens or characters; another number works, too.

    >>> spread(0.5, 0.25, 5.0), spread(0.5, 0.25, 0.0), spread(1.0, 0.25, 5.0)
    (0.4375, 0.375, 1.0)
    """
    if uncertainty >= 1.0:
        return uncertainty
    # Products and not a power, which would raise an error for large numbers.
    square = log_length / MIDDLE * (log_length / MIDDLE)
    return uncertainty * (1.0 - width / (1.0 + square * square))
