"""Grading of multiple-choice answers, words, lists of words and brackets."""
