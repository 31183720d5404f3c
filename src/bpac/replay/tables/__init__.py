"""Tables of recorded answers."""
