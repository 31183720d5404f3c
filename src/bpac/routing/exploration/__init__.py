"""Exploration: how often the expert is called on accepted drafts."""
