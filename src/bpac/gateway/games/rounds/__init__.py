"""Rounds under way: drafts, decisions by their id, sessions, outcomes."""
