"""Metrics: counters, durations, and the page that Prometheus reads."""
