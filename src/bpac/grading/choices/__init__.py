"""Grading answers that are options or words."""
