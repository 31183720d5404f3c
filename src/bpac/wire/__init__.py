"""The OpenAI chat API's format: answers, streams and JSON, read and written in one place. No IO."""
