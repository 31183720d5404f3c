"""Who sends a request: API keys, cookies of the dashboard, origins, failed logins."""
