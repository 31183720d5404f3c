"""HTTP: endpoints, request bodies, error responses, connections."""
