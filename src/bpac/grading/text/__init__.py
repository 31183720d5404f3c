"""Finding the answer in a text."""
