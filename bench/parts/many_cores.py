"""`python -m bench.parts.many_cores 8 node ...`: runs the app with a computer that claims to have more cores."""

from __future__ import annotations

import sys

from app.machine.hardware import cores


def main() -> None:
    n_cores = int(sys.argv.pop(1))
    cores.fast_cores = lambda: cores.Cores(n_cores, n_cores)
    from app.cli import main as app

    app()


if __name__ == "__main__":
    main()
