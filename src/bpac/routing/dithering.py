"""Dithering: equal scores are spread a little, so that a threshold can accept a part of the drafts that have them.

1. A score with few values, such as a stated confidence, puts many drafts on one value. A threshold accepts all of them
   or none. The *dithered* score is ``U' = U · (1 − w · V)`` with an independent uniform V. A threshold among its values
   accepts a share of the drafts with the same U.
2. It is one more score, a function of the draft and of a draw that knows nothing of the loss and nothing of the coin
   that decides on audits. So the promise holds for it as for any other (MATH section 16). It is recorded with the
   decision in place of U, and everything that follows from the journal uses the recorded value.
3. A score of 1 marks a draft that must not be accepted, and stays 1. A score of 0 stays 0.
4. The width w spreads one value over 16 to 32 levels of the wealth (``RelativeLevels``), so that a threshold can accept
   it in steps of 3 to 6 %. Scores that differ by more than w keep their order.
"""

# 16 levels of ``RelativeLevels``, whose distance is at most 1/1024 of the score.
WIDTH = 16 / 1024


def dithered(uncertainty: float, width: float, draw: float) -> float:
    """The score that is recorded and compared with the threshold.

    Parameters
    ----------
    uncertainty: the score of the draft (U).
    width: by how much it is lowered at most, relative to itself (w).
    draw: a uniform draw in [0, 1) (V).

    >>> dithered(0.5, 0.25, 0.5), dithered(1.0, 0.25, 0.5)
    (0.4375, 1.0)
    """
    return uncertainty * (1.0 - width * draw) if uncertainty < 1.0 else uncertainty


def of_other_width(recorded: float, old: float, new: float, draw: float) -> float:
    """A recorded score of another game, as history for a game with a width of its own.

    It is never above what the dithered score of the new game could be, so that a loss counts for at least the
    thresholds that it should count for.

    Parameters
    ----------
    recorded: the score that the other game recorded.
    old, new: the widths of the two games.
    draw: a uniform draw in [0, 1).
    """
    if old == new:
        return recorded
    return dithered(recorded, new, 1.0 if old else draw)
