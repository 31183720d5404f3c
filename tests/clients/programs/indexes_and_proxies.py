"""Clients that load slowly, in one process: LlamaIndex, LiteLLM with its proxy, and the command ``llm``."""

from tests.clients.programs import litellm_clients, llama_index_models, llm_command
from tests.clients.programs.checking import main

if __name__ == "__main__":
    main(
        [
            llm_command.Chat,
            llm_command.Responses,
            llama_index_models.Chat,
            llama_index_models.Responses,
            llama_index_models.KnownChat,
            llama_index_models.KnownMessages,
            litellm_clients.Chat,
            litellm_clients.Responses,
            litellm_clients.Messages,
            litellm_clients.ProxiedChat,
            litellm_clients.ProxiedResponses,
            litellm_clients.ProxiedMessages,
        ]
    )
