"""A session of the Python SDK, 1.x or 2.x: reads requests and writes results as lines of JSON.

Usage: python host.py '{"command": …, "args": …}' or python host.py '{"url": …, "headers": …}'
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

try:
    from mcp import Client  # 2.x: sends `server/discover` and falls back to `initialize`.
except ImportError:
    Client = None

METHODS = {
    "tools/list": lambda client, params: client.list_tools(),
    "tools/call": lambda client, params: client.call_tool(params["name"], params["arguments"]),
    "prompts/list": lambda client, params: client.list_prompts(),
    "prompts/get": lambda client, params: client.get_prompt(params["name"], params["arguments"]),
    "resources/list": lambda client, params: client.list_resources(),
    "resources/read": lambda client, params: client.read_resource(params["uri"]),
}

asked = []


async def agree(context, params):
    """Its user accepts every request once, and gives a name if the form has one."""
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"decision": "once", "name": "Ada"})


def transport(target):
    if "command" in target:
        return stdio_client(StdioServerParameters(**target))
    http_client = create_mcp_http_client(headers=target["headers"])
    return streamable_http_client(target["url"], http_client=http_client)


@asynccontextmanager
async def session(target):
    if Client is not None:
        async with Client(transport(target), elicitation_callback=agree) as client:
            yield client
        return
    async with transport(target) as (read, write, *_):
        async with ClientSession(read, write, elicitation_callback=agree) as client:
            await client.initialize()
            yield client


async def main():
    async with session(json.loads(sys.argv[1])) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            request = json.loads(line)
            result = await METHODS[request["method"]](client, request["params"])
            answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            print(json.dumps({"result": answer, "asked": asked}), flush=True)


asyncio.run(main())
