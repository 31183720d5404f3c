"""The wire formats of chat APIs, read and written in one place without IO.

``json`` reads and writes JSON, ``sse`` reads server-sent events, ``completions`` reads whole answers, ``stream`` reads
streamed ones, and ``rendering`` writes both for callers. The modules speak OpenAI's chat completions; another API gets
modules of its own beside them, which return the same ``bpac.answer.Answer``.
"""
