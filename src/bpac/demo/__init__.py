"""The demo: a real gateway in front of a pair of models, questions from the official client, and what came of it."""
