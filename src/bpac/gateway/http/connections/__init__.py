"""Connections of callers: limits, disconnects, keep-alive comments."""
