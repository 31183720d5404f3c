"""What operators see of games: status, troubles, recent decisions, warnings."""
