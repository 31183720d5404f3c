"""Requests while Redis is gone."""
