"""Telemetry for operators: metrics, traces, logs, and counts of rejected requests."""
