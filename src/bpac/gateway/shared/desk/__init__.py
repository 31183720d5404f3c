"""A shared game as chat requests use it: tickets, decisions, outcomes, sessions."""
