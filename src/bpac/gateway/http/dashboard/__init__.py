"""The endpoints of the dashboard."""
