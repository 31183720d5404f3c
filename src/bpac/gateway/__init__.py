"""The gateway: an OpenAI-compatible server that keeps the promise for any client."""
