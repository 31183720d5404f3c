"""Drafts: whole or streamed, their scores, and what is known of them beside the score."""
