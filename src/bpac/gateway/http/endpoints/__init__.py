"""The endpoints, except for those of the dashboard."""
