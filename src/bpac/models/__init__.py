"""Asking model servers that speak OpenAI's chat API, judging with them, and embedding texts with a small model."""
