"""The wire formats of chat APIs, read and written in one place without IO.

``json`` reads and writes JSON, ``sse`` reads server-sent events, ``completions`` reads whole answers, ``stream`` reads
streamed ones, and ``rendering`` writes both for callers. These modules speak OpenAI's chat completions, the form that
all else uses. Packages beside them translate other APIs to and from it: ``responses`` (OpenAI) and ``messages``
(Anthropic).
"""
