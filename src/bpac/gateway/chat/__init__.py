"""One chat completion, from the request to the response: draft, decision, expert, grading."""
