"""Decisions for callers that ask their models themselves: tickets, decisions, and requests that are repeated."""
