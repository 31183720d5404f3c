"""Scores that are learned on the way (MATH section 14).

1. The caller gives *features* with each draft: numbers or words that are known before the decision, such as its length.
   They are recorded with the decision (``features.py``).
2. When enough audits have an outcome (``samples.py``), a logistic model of the loss is fitted to them, each weighted by
   the inverse of the probability with which it was audited (``fit.py``).
3. The model is frozen, and written to the journal as an entry ``learned`` before the next decision. From then on it is
   one more score of every draft (``model.py``; all of them at once: ``scorer.py``).
4. It bets from a wealth of 1 on the queries that arrive after the entry, with a share of α that was set aside for it
   from the start (``learned_score.py``). So it is a fixed function of the draft for every round it bets on, and the
   rounds that it was fitted on are never bet on.
5. Of all scores, the one whose certified threshold accepts most traffic is in force (``bettors/candidates.py``), and
   exploration asks for what any of them could gain (``rates.py``).
"""
