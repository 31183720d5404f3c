"""Replays and simulations: tables and made-up streams through a router, and what came of it."""
