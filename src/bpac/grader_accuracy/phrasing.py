r"""Ways in which models phrase an answer: alone, after a derivation, marked, in a box, in several languages."""

import random

from bpac.grader_accuracy.labelled_pair import AnswerVariants

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


def phrase_answer(variants: AnswerVariants, answer: str, rng: random.Random) -> str:
    """A text that gives the answer, as a model might phrase it.

    Parameters
    ----------
    variants: says whether the answer is a formula or a complete text.
    answer: the answer, in one of its variants.
    rng: random source that chooses the words around the answer.
    """
    if variants.whole:
        return answer
    if "\n" in answer:
        return rng.choice(_BLOCKS).format(answer)
    if rng.random() < 0.2:
        return answer
    # Models seldom put a long answer into a box, and its braces may not be balanced.
    boxable = len(answer) < 60 and answer.count("{") == answer.count("}") and "\\{" not in answer
    if boxable and rng.random() < 0.4:
        words = rng.choice(_BOXED if variants.mathematics else _BOXED_TEXT).format(answer)
    else:
        set_as = f"${answer}$" if variants.mathematics and rng.random() < 0.5 else answer
        words = rng.choice(_MARKED).format(set_as)
    return f"{rng.choice(_DERIVATIONS)}\n\n{words}" if rng.random() < 0.4 and "<think>" not in words else words
