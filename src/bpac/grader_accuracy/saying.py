r"""Ways in which models say an answer: alone, after a derivation, marked, in a box, in several languages."""

import random

from bpac.grader_accuracy.pair import Meant

_DERIVATIONS = (
    "Let us look at it step by step. First 3 + 4 = 7, which is too small.",
    "I considered the other candidates and found them wanting.\nOne of them fails at once.",
    "Wir betrachten zuerst den einfachen Fall.",
    "D'abord, on élimine les autres possibilités.",
    "首先排除其他选项。",
)
_MARKED = (
    "The answer is: {}",
    "**Answer:** {}",
    "Answer: {}",
    "**Final Answer: {}**",
    "So the answer is **{}**.",
    "Therefore, the final answer is: {}",
    "Die Antwort lautet: {}",
    "Réponse : {}",
    "La respuesta es: {}",
    "答案：{}",
    "Ответ: {}",
    "Answer: {}\n\nExplanation: it follows from what was said.",
    "The answer is: {}\n\nI hope this helps!",
    "<think>Or is the answer 12?</think>The answer is: {}",
)
_BOXED = (
    "So $\\boxed{{{}}}$.",
    "\\[ \\boxed{{{}}} \\]",
    "We get $\\boxed{{{}}}$",
    "Thus the answer is $\\boxed{{{}}}$.",
)
_BOXED_TEXT = ("So $\\boxed{{\\text{{{}}}}}$.", "\\boxed{{{}}}")
_BLOCKS = ("The answer is:\n{}", "Here is the answer:\n\n{}", "Sure! Here is what you asked for:\n\n{}", "{}\n", "\n{}")


def said(meant: Meant, answer: str, draw: random.Random) -> str:
    """A text that gives the answer.

    Parameters
    ----------
    meant: what kind of answer it is.
    answer: what is said.
    draw: chooses the words around it.
    """
    if meant.whole:
        return answer
    if "\n" in answer:
        return draw.choice(_BLOCKS).format(answer)
    if draw.random() < 0.2:
        return answer
    # A long answer is seldom put in a box, and braces within it may not balance.
    boxable = len(answer) < 60 and answer.count("{") == answer.count("}") and "\\{" not in answer
    if boxable and draw.random() < 0.4:
        words = draw.choice(_BOXED if meant.mathematics else _BOXED_TEXT).format(answer)
    else:
        set_as = f"${answer}$" if meant.mathematics and draw.random() < 0.5 else answer
        words = draw.choice(_MARKED).format(set_as)
    return f"{draw.choice(_DERIVATIONS)}\n\n{words}" if draw.random() < 0.4 and "<think>" not in words else words
