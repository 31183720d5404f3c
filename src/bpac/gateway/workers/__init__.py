"""Several processes on one machine: one owns the journals, the others answer requests and decide through it."""
