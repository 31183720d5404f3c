"""Comparing mathematical answers."""
