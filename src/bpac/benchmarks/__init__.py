"""Benchmarks: questions from the hub or a file, how they are asked, and how the answers are graded."""
