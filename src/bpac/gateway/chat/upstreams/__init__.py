"""Models as requests use them: one server, or several deployments."""
