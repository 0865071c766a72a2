"""Tool servers (MCP) that a person added: stored, started, listed and called. Run with `python -m app.tools`."""
