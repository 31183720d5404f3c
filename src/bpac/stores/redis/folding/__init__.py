"""From the inbox of a game to its journal, and what is published of it."""
