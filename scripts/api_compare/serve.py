"""llama.cpp's own server over one model, in the environment of `make api-compare`: serve.py SITE MODEL PORT."""

from __future__ import annotations

import sys
import types


def main(site: str, model: str, port: str) -> None:
    """`site`: where the engine's binding is installed. Serves until it is killed."""
    sys.modules["diskcache"] = types.ModuleType("diskcache")  # see backends/llamacpp/binding.py
    sys.path.append(site)
    from importlib import import_module

    app = import_module("llama_cpp.server.app")
    settings = import_module("llama_cpp.server.settings")
    served = app.create_app(
        server_settings=settings.ServerSettings(host="127.0.0.1", port=int(port)),
        model_settings=[
            settings.ModelSettings(
                model=model,
                model_alias="guide",
                n_ctx=2048,
                n_threads=1,
                logits_all=True,
                verbose=False,
            )
        ],
    )
    import_module("uvicorn").run(served, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
