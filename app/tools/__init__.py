"""The tool servers (MCP) that the user added: how they are stored, started, listed and called.

Run with `python -m app.tools`.
"""
