"""Grading: find the final answer in a model's text and decide whether it is correct. No network and no files."""
