"""Live games: routers with their journals, segments, savings."""
