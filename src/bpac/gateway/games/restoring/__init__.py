"""Games at a start: restored, warmed up with history, retired, and their old entries in archives."""
