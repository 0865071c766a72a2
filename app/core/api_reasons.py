"""The sentences of the Chat API: keys, models, tools, schemas."""

from __future__ import annotations

API_SENTENCES: dict[str, str] = {
    "schema_refused": "The JSON schema cannot be used ({where}): {why}.",
    "api_model_not_loaded": "{name} is not loaded; {loaded} is. Load it in Poolhouse, "
    "or allow programs to change the model (`poolhouse api on --may-load`).",
    "api_tools_unknown": "{model} was not made to call tools. Ask without them, or load a model whose chat template "
    "knows tools.",
    "api_tool_missing": "There is no tool called {name} in this request. Choose one of its tools.",
    "api_content_unsupported": "A message holds {kind}, and only text can be read. Send text.",
    "api_unsupported": "{what} is not supported. Ask without it.",
    "api_key_name": "{name} cannot be the name of a key. Use letters, digits, dots, dashes and underscores, "
    "at most 32.",
    "api_keys_many": "There are {most} keys already. Remove one that is not used any more.",
    "api_key_unknown": "There is no key called {name}. There are: {there}.",
    "api_key_last": "{name} is the only key. Make another one first, or turn the API off.",
    "api_keys_locked": "The place for the API's keys cannot be opened. Unlock the system keyring, then try again.",
    "model_embeds_not": "{name} cannot turn texts into vectors. Choose an embedding model, or import one: "
    "its file says how it pools.",
    "model_only_embeds": "{name} turns texts into vectors and writes none. Choose a model that was made to write.",
    "embedding_model_unnamed": "Name the embedding model. There are: {there}.",
    "embedding_too_long": "A text of {tokens} tokens is longer than the model reads, which is {most}. "
    "Cut it into several.",
    "embedding_size": "The vectors of this model have {most} values. Ask for fewer dimensions.",
    "embedding_no_room": "{model} needs {need_bytes} for embeddings, and {free_bytes} are free on this machine. "
    "Unload the other model, or choose a smaller one.",
    "api_port_taken": "Port {port} and the ones after it are used by other programs. Choose another port "
    "(`poolhouse api on --port`).",
}
