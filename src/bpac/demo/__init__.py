"""The demo: a real gateway with two models behind it, questions from the official OpenAI client, and a report."""
