"""The window's connection to the process that runs the tool servers (MCP), and the menu of a chat's tools."""
