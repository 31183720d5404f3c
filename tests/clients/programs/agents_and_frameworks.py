"""Clients that are built on those of OpenAI and Anthropic, in one process: what they have in common is loaded once."""

from tests.clients.programs import (
    instructor_clients,
    langchain_models,
    openai_agents,
    pydantic_ai_models,
)
from tests.clients.programs.checking import main

if __name__ == "__main__":
    main(
        [
            openai_agents.Responses,
            openai_agents.Chat,
            langchain_models.Chat,
            langchain_models.Responses,
            langchain_models.Messages,
            pydantic_ai_models.Chat,
            pydantic_ai_models.Responses,
            pydantic_ai_models.Messages,
            instructor_clients.Chat,
            instructor_clients.Responses,
            instructor_clients.Messages,
        ]
    )
