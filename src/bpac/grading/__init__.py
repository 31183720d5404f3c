"""From text to verdict: what a model answered, and whether that is the answer. Nothing here does IO."""
