"""Benchmarks: load questions from the Hugging Face hub or a file, ask them, and grade the answers."""
