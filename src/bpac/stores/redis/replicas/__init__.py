"""A replica's part in a game, and who is alive."""
