"""Run the tool servers for the window: `python -m app.tools HOME`."""

from app.tools.tool_process import main

main()
