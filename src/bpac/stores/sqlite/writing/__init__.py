"""Writing to the file: connections, ownership, commits, checkpoints."""
