"""Comparison of mathematical answers, with computer algebra in separate processes."""
