"""The processes that answer requests: drafts, experts and grading; games they ask the owner."""
