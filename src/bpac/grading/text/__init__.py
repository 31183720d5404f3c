"""Finding and normalizing the answer in a model's text."""
