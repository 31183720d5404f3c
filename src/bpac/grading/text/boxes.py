r"""The contents of ``\boxed{…}``, found in one pass over the text, also if boxes are nested or not closed."""

import re
from dataclasses import dataclass

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?P<open>\{)?")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_TOKEN = re.compile(r"[^\s${}]+")
_MARGIN = 20
_BETWEEN = str.maketrans("", "", " \t\n\r$.,;")
# Two boxes with only this between them are one answer: "\boxed{2} or \boxed{3}".
_JOINING = frozenset({"", "and", "or", r"\text{and}", r"\text{or}"})


@dataclass(frozen=True, slots=True)
class Box:
    """The position of a box in a text.

    Parameters
    ----------
    start, stop: the index of the first character of the box and of the first character after it.
    opens, closes: the same for the contents of the box; ``closes`` is ``None`` if the box is never closed.
    """

    start: int
    stop: int
    opens: int
    closes: int | None

    def inside(self, text: str) -> str:
        """The contents of the box."""
        return text[self.opens : self.closes].strip()


def found_boxes(text: str) -> list[Box]:
    r"""The outermost boxes of a text, in order, including boxes that are never closed.

    >>> [box.inside(r"\boxed{\frac{1}{2}} \boxed 3") for box in found_boxes(r"\boxed{\frac{1}{2}} \boxed 3")]
    ['\\frac{1}{2}', '3']
    """
    if "\\boxed" not in text and "\\fbox" not in text:
        return []
    closing = closing_braces(text)
    boxes: list[Box] = []
    for mark in _BOX.finditer(text):
        is_inner = bool(boxes) and boxes[-1].closes is not None and mark.start() < boxes[-1].stop
        box = _box(text, mark, closing)
        if not is_inner:
            boxes.append(box)
        elif box.closes is not None and _fills(text, boxes[-1], box):
            # A box that contains nothing but another box is the same answer.
            boxes[-1] = Box(boxes[-1].start, boxes[-1].stop, box.opens, box.closes)
    return boxes


def boxes(text: str) -> list[str]:
    r"""The contents of closed boxes, in order; boxes joined only by "and", "or" or a comma are one answer.

    >>> boxes(r"\boxed{\frac{1}{2}} … $\boxed{2}$ or $\boxed{3}$")
    ['\\frac{1}{2}', '2, 3']
    """
    return [", ".join(box.inside(text) for box in group) for group in joined_boxes(text)]


def joined_boxes(text: str) -> list[list[Box]]:
    """The closed boxes of a text, grouped by answer: boxes joined only by "and", "or" or a comma form one group."""
    groups: list[list[Box]] = []
    for box in found_boxes(text):
        if box.closes is None:
            continue
        if groups and text[groups[-1][-1].stop : box.start].translate(_BETWEEN) in _JOINING:
            groups[-1].append(box)
        else:
            groups.append([box])
    return groups


def _box(text: str, mark: re.Match[str], closing: dict[int, int]) -> Box:
    if mark["open"]:
        closes = closing.get(mark.end() - 1)
        return Box(mark.start(), mark.end() if closes is None else closes + 1, mark.end(), closes)
    token = _TOKEN.match(text, mark.end())
    if not token:
        return Box(mark.start(), mark.end(), mark.end(), None)
    return Box(mark.start(), token.end(), token.start(), token.start() + len(token[0].rstrip(".")))


def _fills(text: str, outer: Box, inner: Box) -> bool:
    assert outer.closes is not None
    # The margin keeps this fast: a box may contain thousands of others.
    if inner.start - outer.opens > _MARGIN or outer.closes - inner.stop > _MARGIN:
        return False
    return not (text[outer.opens : inner.start].strip() or text[inner.stop : outer.closes].strip())


def closing_braces(text: str) -> dict[int, int]:
    """For every opening brace that is closed, the index of its closing brace.

    >>> closing_braces("{a{b}c}{")
    {2: 4, 0: 6}
    """
    pairs: dict[int, int] = {}
    open_at: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            open_at.append(brace.start())
        elif brace[0] == "}" and open_at:
            pairs[open_at.pop()] = brace.start()
    return pairs
