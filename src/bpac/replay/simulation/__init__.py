"""Simulated queries: their distribution, their timing, what goes wrong, and the gateway that handles them."""
