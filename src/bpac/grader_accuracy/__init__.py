"""How often graders are wrong: labelled pairs of answers, and the rates of wrong verdicts on them."""
