"""Budgets of keys: how many requests and tokens a tenant may use per day."""
