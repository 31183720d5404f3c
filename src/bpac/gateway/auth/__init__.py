"""Authentication: API keys and their roles, dashboard cookies, allowed origins, failed logins."""
