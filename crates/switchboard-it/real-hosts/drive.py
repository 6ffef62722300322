"""Drives `switchboard serve` with the Python SDK, in each way that its client opens.

Usage: python drive.py SWITCHBOARD
"""

import asyncio
import os
import sys

from mcp import Client, ClientSession, StdioServerParameters, stdio_client

SERVER = StdioServerParameters(command=sys.argv[1], args=["serve"], env=dict(os.environ))


def text(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def by_hand() -> None:
    async with stdio_client(SERVER) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.server_info.name == "switchboard", hello
        tools = await session.list_tools()
        assert [tool.name for tool in tools.tools] == ["mcp"], tools
        call = {"tool": "python_add", "args": {"a": 2, "b": 40}}
        answer = await session.call_tool("mcp", call)
        assert text(answer) == "42" and not answer.is_error, answer


async def by_probe() -> None:
    """The newest client asks for `server/discover` first and falls back to `initialize`."""
    async with Client(stdio_client(SERVER)) as client:
        answer = await client.call_tool("mcp", {"search": "add two numbers"})
        assert "python_add(a: integer, b: integer)" in text(answer), answer
        answer = await client.call_tool("mcp", {"tool": "no_such_tool"})
        assert answer.is_error, answer


asyncio.run(by_hand())
asyncio.run(by_probe())
