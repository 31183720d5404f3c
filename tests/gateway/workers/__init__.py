"""A gateway with several processes."""
