"""The report, its sections and its checklist."""
