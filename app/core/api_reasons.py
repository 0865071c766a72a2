"""The sentences of the Chat API: keys, models, tools, schemas."""

from __future__ import annotations

API_SENTENCES: dict[str, str] = {
    "schema_refused": "The JSON schema cannot be used ({where}): {why}. Change that part of it, "
    "or ask without a schema.",
    "api_model_not_loaded": "{name} is not loaded. Loaded: {loaded}. Load it in Poolhouse, "
    "or allow programs to change the model (`poolhouse api on --may-load`).",
    "api_model_stays": "{name} stays loaded: others may be asking it. Unload it in Poolhouse, or allow programs to "
    "change the model (`poolhouse api on --may-load`).",
    "api_closed": "The API was turned off, or moved, while this was under way. Ask again when it is open: "
    "Settings, Local API says where.",
    "api_key_gone": "The API key of this request was replaced or taken away while this was under way. Set the new one: "
    "Settings, Local API shows it.",
    "api_model_asked": "{name} is asked by others now. Let it go when they are done.",
    "api_tools_unknown": "Poolhouse does not know how {model} calls tools. Ask without them, or load a model whose "
    "chat template names tools in a form that Poolhouse reads.",
    "thinking_always": "This model always thinks before it answers. Ask without turning that off, "
    "or limit its thought.",
    "thinking_never": "This model cannot think before it answers. Ask without turning thinking on, or choose a model "
    "that can.",
    "api_tool_missing": "There is no tool called {name} in this request. Choose one of its tools.",
    "bias_unknown": "There is a bias for token {token}, and the model's last is {most}. Leave it out of the request.",
    "api_no_tools": "This request must call a tool, and it holds none. Send some with it, or leave tool_choice out.",
    "api_part_without_text": "A part of a message is of type {kind}, and its field `text` holds none. Write it there.",
    "api_content_unsupported": "A message holds {kind}, and only text can be read. Send text.",
    "api_unsupported": "Poolhouse does not support {what}. Ask without it.",
    "api_one_prompt": "This request has several prompts, and one is answered at a time. Send a request for each.",
    "api_count_elsewhere": "The tokens of {model} can be counted only where it is: another server answers for it here. "
    "Ask without counting them first.",
    "api_host_name": "{name} is not a host name. Give one name without a path, such as host.docker.internal.",
    "api_host_unknown": "{name} is not an allowed host name. `poolhouse api status` lists them.",
    "api_origin": "{origin} is not a web origin. Give a scheme and a host without a path, such as "
    "http://localhost:3000 or app://obsidian.md.",
    "api_origin_unknown": "{origin} is not an allowed origin. `poolhouse api status` lists them.",
    "api_access_many": "{most} are allowed already. Remove one that you no longer need.",
    "api_key_name": "{name} cannot be the name of a key. Use letters, digits, dots, dashes and underscores, "
    "at most 32.",
    "api_keys_many": "There are {most} keys already. Remove one that is not used any more.",
    "api_key_unknown": "There is no key called {name}. There are: {there}.",
    "api_key_last": "{name} is the only key. Make another one first, or turn the API off.",
    "api_keys_locked": "The place for the API's keys cannot be opened. Unlock the system keyring, then try again.",
    "model_embeds_not": "{name} cannot turn texts into vectors. Choose one of the models that can: {there}.",
    "embedding_model_unknown": "There is no embedding model called {name}. There are: {there}.",
    "model_only_embeds": "{name} turns texts into vectors and writes none. Choose a model that was made to write.",
    "model_only_ranks": "{name} is a reranker: it scores how well texts answer a question and writes none. "
    "Choose a model that was made to write.",
    "model_ranks_not": "{name} is not a reranker. Choose one of: {there}.",
    "model_ranks_not_alone": "{name} is not a reranker, and there is none here. Import one with "
    "`poolhouse import FILE.gguf`, for example bge-reranker-v2-m3.",
    "reranker_missing": "There is no reranker here. Import one with `poolhouse import FILE.gguf`, "
    "for example bge-reranker-v2-m3.",
    "guest_reranker_missing": "There is no reranker on {host}, which answers here. Whoever runs {host} can import one.",
    "reranker_unnamed": "Name the reranker. There are: {there}.",
    "unforecast_ranks": "{model} scores texts for programs, whole on this machine and beside the model that writes. "
    "No speed is forecast.",
    "embedding_model_missing": "There is no embedding model here, and no other turns texts into vectors. "
    "Import one with `poolhouse import FILE.gguf`.",
    "embedding_model_unnamed": "Name the embedding model. There are: {there}.",
    "embedding_too_long": "A text of {tokens} tokens is longer than the model reads, which is {most}. "
    "Cut it into several.",
    "embedding_size": "The vectors of this model have {most} values. Ask for fewer dimensions.",
    "embedding_only_whole": "{model} turns texts into vectors, and is loaded whole on this machine. "
    "Load it without a split and without a shape.",
    "unforecast_embeds": "{model} turns texts into vectors for programs, whole on this machine and beside the model "
    "that writes. No speed is forecast.",
    "embedding_no_room": "{model} needs {need_bytes} for embeddings, and {free_bytes} are free on this machine. "
    "Unload the other model, or choose a smaller one.",
    "embedding_gave_way": "{model} gave its memory to the model that writes. Ask again once that is loaded.",
    "api_no_lan": "This computer is in no network that joins a household. Connect it, "
    "or choose the network in Settings.",
    "api_tokens_minute": "This key may have {most} tokens a minute and has had them. Ask again in {seconds} s.",
    "upstream_url": "{url} cannot be an upstream. Use https:// and the address up to /v1; "
    "http:// is for this computer only.",
    "upstream_unknown": "There is no upstream called {name}. There are: {there}.",
    "upstream_certificate": "The certificate for {name} cannot be read. Give a file with it in PEM form.",
    "upstream_failed": "{name} should have answered in place of the pool, and did not: {why}. Ask again later; "
    "`poolhouse upstream test {name}` says whether it is well.",
    "upstream_off": "There is no model called {model} here, and {name}, which has it, is off. "
    "`poolhouse upstream on {name}` lets it answer.",
    "upstream_test_failed": "{name} does not answer as it should: {why}. Check its address and its key "
    "(`poolhouse upstream add` changes both).",
    "upstream_refused": "{name} answers in place of the pool, and cannot use this request: {why}. Change the request, "
    "or ask for another model.",
    "upstream_circle": "This request was sent on from here already: {name}, which has the model, asks this Poolhouse "
    "in its turn. Turn one of these two upstreams off.",
    "upstream_busy": "{name} has too much to do. Ask again in {seconds} s.",
    "upstream_spent": "{name} has the model, but its {most} tokens are spent. "
    "`poolhouse upstream change {name} --forget-spent` begins anew.",
    "upstream_uncounted": "{name} has the model, but what it has cost is no longer known: the file of it was damaged. "
    "`poolhouse upstream change {name} --forget-spent` counts anew and lets it answer again.",
    "upstream_short": "{name} has the model, but {tokens} of its {most} tokens are left, and this request needs "
    "about {asked}. Shorten it, or raise the cap: `poolhouse upstream change {name} --cap-tokens`.",
    "upstream_tokens": "Token ids mean something else at {name}, which has the model. "
    "Ask with text, and without logit_bias.",
    "upstream_raw_form": "{name} has the model, and OpenAI's API has no form of an answer to a raw prompt. "
    "Ask without `raw`, or without `format`.",
    "upstream_key_odd": "The key of an upstream has only letters, digits and signs of ASCII.",
    "control_full": "Poolhouse answers {most} requests of this computer at once already. Wait until one is answered.",
    "api_port_taken": "Port {port} and the ones after it are used by other programs. Choose another port "
    "(`poolhouse api on --port`).",
}
