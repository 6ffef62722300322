// The tools that the model gets with direct tools, and with the granular toolset.

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { inHome, ours, told } from "./home.mjs";
import { script, toldByTools } from "./model.mjs";
import { VERSIONS, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";
import { SCHEMAS } from "./schemas.mjs";

const direct = (world) => ({ s: { ...ours(world, "schemas"), directTools: true } });

// A home in which the schema server was listed and does not run. The listing was made by this Pi, because
// listings are cached for each set of client capabilities.
const inListed = (version, use) =>
  inHome({ servers: direct }, async (world) => {
    await print(version, world, script([["mcp", { connect: "s" }]]));
    rmSync(join(world.home, "told"));
    world.model.requests.length = 0;
    await use(world);
  });

const offered = ({ tools }) => Object.fromEntries(tools.map(({ function: { name, ...rest } }) => [name, rest]));

for (const version of Object.keys(VERSIONS)) {
  test(`direct tools are listed from the cache with their schemas (${version})`, () =>
    inListed(version, async (world) => {
      const value = { whatever: ["it", "is"] };
      await print(version, world, script("hello"));
      assert.deepEqual(told(world), [], "nothing was started");
      const tools = offered(world.model.requests[0]);
      for (const { name, arrives } of SCHEMAS) {
        assert.equal(JSON.stringify(tools[`s_${name}`]?.parameters), JSON.stringify(arrives), name);
      }
      const anything = ["anything", "unknown_type", "no_schema"].map((name) => [[`s_${name}`, { value }]]);
      await print(version, world, script(...anything));
      assert.deepEqual(toldByTools(world.model.requests), anything.map(() => JSON.stringify({ value })));
    }));

  test(`a changed tool keeps its old definition until the user reconnects (${version})`, () =>
    inListed(version, (world) =>
      rpc(version, world, {}, async (pi) => {
        const description = async (tool, value) => {
          await pi.prompt(script([[tool, { value }]]));
          return offered(world.model.requests.at(-1)).s_string.description;
        };
        await description("s_boolean", true);
        await pi.untilShown("/mcp tools s", /Takes another string/);
        assert.equal(await description("s_string", "a"), "Takes string");
        await pi.slash("/mcp reconnect s");
        assert.match(await description("s_string", "a"), /Takes another string$/);
      })));

  test(`the granular toolset has a tool for each step (${version})`, () =>
    inHome({ servers: (world) => ({ ours: ours(world) }), settings: { toolset: "granular" } }, async (world) => {
      const call = ["mcp_call_tool", { connection_id: "ours", tool_name: "count", arguments: {} }];
      await print(version, world, script([["mcp_list_connections", {}]], [call]));
      const own = Object.keys(offered(world.model.requests[0])).filter((name) => name.startsWith("mcp"));
      assert.deepEqual(own.sort(), [
        "mcp_call_tool",
        "mcp_connect",
        "mcp_disconnect",
        "mcp_list_connections",
        "mcp_list_resources",
        "mcp_list_tools",
        "mcp_read_resource",
        "mcp_register_notification_handler",
        "mcp_reload_config",
        "mcp_search",
      ]);
      const [connections, counted] = toldByTools(world.model.requests);
      assert.match(connections, /ours/);
      assert.match(counted, /counted/);
    }));
}
