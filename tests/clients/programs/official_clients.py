"""The clients of OpenAI and Anthropic, in their newest versions."""

from tests.clients.programs import anthropic_python, openai_python
from tests.clients.programs.checking import main

if __name__ == "__main__":
    main([openai_python.Chat, openai_python.Responses, anthropic_python.Messages])
