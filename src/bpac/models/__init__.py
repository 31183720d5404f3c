"""Models: servers that speak the OpenAI protocol, judges among them, and a small model for embeddings."""
