"""The MCP server: a memory as tools, resources and prompts for any host that speaks the protocol (extra `mcp`)."""

__all__: list[str] = []
