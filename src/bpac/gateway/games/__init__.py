"""Live games: routers with their journals, the games of a route, savings, status."""
