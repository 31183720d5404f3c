"""The Redis server: its address, connections, scripts, and whether it can keep games."""
