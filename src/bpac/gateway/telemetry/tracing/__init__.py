"""Traces with OpenTelemetry."""
