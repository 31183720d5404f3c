"""Audits: checking an exported journal."""
