"""Backups, and stores that failed."""
