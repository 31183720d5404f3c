"""Requests made acceptable to a model server: what it refuses is left out, renamed or rewritten before it is sent."""
