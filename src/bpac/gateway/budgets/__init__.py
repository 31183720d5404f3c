"""Limits of keys: how many requests and tokens a tenant may use per day (a budget) and per minute (a rate limit)."""
