"""A server by the Python SDK, to stand behind Switchboard."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


server.run("stdio")
