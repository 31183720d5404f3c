"""Own logs → table: calls of models as other programs record them, paired and graded.

1. ``log_files`` opens a file, compressed or not, and yields its records: JSON lines, a JSON document or rows of CSV.
2. ``formats`` knows how LiteLLM, Langfuse, OpenTelemetry and OpenAI clients write a call; a reader is pure, and makes
   ``LoggedCall`` values of one record. Files with any column names are read by ``formats.rows``.
3. ``mapping`` takes further values from a record, as ``--map`` says.
4. ``roles`` says which model is the draft and which the expert; ``pairing`` finds the two answers to one question.
5. ``table`` scores and grades the pairs. What cannot be used is counted by its reason, never dropped silently.
"""
