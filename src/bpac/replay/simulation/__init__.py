"""Simulated streams, load and faults."""
