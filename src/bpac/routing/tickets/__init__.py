"""Tickets: the order in which queries arrive (MATH section 12)."""
