"""Run the tool servers for the window: `python -m app.tools HOME`."""

from app.tools.tool_host import main

main()
