"""A gateway's decisions from Python: ``bpac.RemoteRouter``."""
