"""Sticky sessions: one decision for a conversation."""
