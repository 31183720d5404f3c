"""The process that owns the journals: games, budgets, pages; fronts decide through it."""
