"""Whether a text is prose: long, and without a final answer that could be compared."""

from bpac.grading.text.boxes import found_boxes
from bpac.grading.text.stated_answers import chosen_option, stated_answers

# Texts with fewer words may be an answer in themselves.
FEWEST_WORDS = 40


def is_prose(text: str) -> bool:
    r"""Whether a text is prose. JSON, code, and texts that mark their answer are not.

    >>> is_prose("word " * 50), is_prose("word " * 50 + "\nSo the answer is 42."), is_prose("42")
    (True, False, False)
    """
    if len(text.split(None, FEWEST_WORDS)) <= FEWEST_WORDS or text.lstrip().startswith(("{", "[")):
        return False
    if "```" in text or "\n####" in text:
        return False
    return not found_boxes(text) and not stated_answers(text) and not chosen_option(text)
