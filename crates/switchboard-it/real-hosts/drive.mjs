// Drives `switchboard` with hosts by others: the TypeScript SDK, the Inspector's command line, and
// the Python SDK, against servers by others. Usage: node drive.mjs SWITCHBOARD PYTHON

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { childrenOf, installed, world } from "./world.mjs";

const [switchboard, python] = process.argv.slice(2);
const { home, files, env } = world(python);
const run = promisify(execFile);

const textOf = (result) => result.content.map((block) => block.text ?? "").join("\n");

// A session of the TypeScript SDK; its user agrees to everything once and counts.
async function session(use) {
  const transport = new StdioClientTransport({ command: switchboard, args: ["serve"], env, cwd: home });
  const client = new Client({ name: "real-hosts", version: "1" }, { capabilities: { elicitation: {} } });
  const asked = [];
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { decision: "once" } };
  });
  await client.connect(transport);
  const mcp = async (args) => textOf(await client.callTool({ name: "mcp", arguments: args }));
  try {
    await use({ client, mcp, asked, pid: transport.pid });
  } finally {
    await client.close();
  }
}

const checks = {
  async "TypeScript SDK: list, search, describe, call"() {
    await session(async ({ client, mcp, asked, pid }) => {
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((tool) => tool.name), ["mcp"]);
      for (const server of ["everything", "files", "python"]) {
        assert.match(await mcp({ connect: server }), new RegExp(`^${server} \\(\\d+ tools?`));
      }
      assert.match(await mcp({ search: "read a file as text" }), /files_read_text_file\(path: string/);
      assert.match(await mcp({ describe: "everything_echo" }), /message: string/);
      assert.match(await mcp({ tool: "everything_echo", args: { message: "hi" } }), /hi$/);
      const path = join(files, "hello.txt");
      assert.equal(await mcp({ tool: "files_read_text_file", args: { path } }), "hello from a file\n");
      assert.equal(await mcp({ tool: "python_add", args: { a: 2, b: 40 } }), "42");

      const written = join(files, "written.txt");
      await mcp({ tool: "files_write_file", args: { path: written, content: "by a tool" } });
      assert.equal(readFileSync(written, "utf8"), "by a tool");
      assert.equal(asked.length, 1, "a destructive tool asks");
      assert.match(asked[0], /write_file/);

      assert.match(await mcp({ tool: "files_read_text_file", args: { path: "/etc/passwd" } }), /denied/i);
      assert.match(await mcp({ tool: "files_read_text_file" }), /^bad_arguments: /);
      const { prompts } = await client.listPrompts();
      assert.ok(prompts.length > 0, "prompts pass through");
      const { resources } = await client.listResources();
      assert.ok(resources.length > 0, "resources pass through");
      await client.readResource({ uri: resources[0].uri });
      assert.equal(childrenOf(pid).length, 3);
    });
  },

  async "TypeScript SDK: a second start lists and searches with no process"() {
    await session(async ({ mcp, pid }) => {
      assert.match(await mcp({}), /^MCP: 0\/3 servers/);
      assert.match(await mcp({ server: "files" }), /files_read_text_file/);
      assert.match(await mcp({ search: "echo a message" }), /everything_echo/);
      assert.match(await mcp({ describe: "files_write_file" }), /content: string/);
      assert.deepEqual(childrenOf(pid), []);
    });
  },

  async "Inspector: list and call"() {
    const inspect = async (...args) => {
      const cli = installed("inspector/cli/build/cli.js");
      const words = [cli, "--cli", switchboard, "serve", ...args];
      const { stdout } = await run(process.execPath, words, { env, cwd: home });
      return JSON.parse(stdout);
    };
    const { tools } = await inspect("--method", "tools/list");
    assert.deepEqual(tools.map((tool) => tool.name), ["mcp"]);
    const call = ["--method", "tools/call", "--tool-name", "mcp", "--tool-arg"];
    const found = await inspect(...call, "search=echo a message");
    assert.match(textOf(found), /everything_echo/);
    const said = await inspect(...call, "tool=everything_echo", 'args={"message":"hi"}');
    assert.match(textOf(said), /hi$/);
  },

  async "Python SDK: initialize and call"() {
    const script = new URL("drive.py", import.meta.url).pathname;
    await run(python, [script, switchboard], { env, cwd: home });
  },

  async "command line: search, describe, call"() {
    const cli = async (...args) => (await run(switchboard, args, { env, cwd: home })).stdout;
    assert.match(await cli("search", "read", "text", "file"), /files_read_text_file/);
    assert.match(await cli("describe", "everything_echo"), /message: string/);
    assert.match(await cli("call", "everything_echo", "message=hi"), /hi\n$/);
    assert.equal(await cli("call", "files_read_text_file", `path=${files}/hello.txt`), "hello from a file\n");
  },
};

for (const [name, check] of Object.entries(checks)) {
  const started = performance.now();
  await check();
  console.log(`ok ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}
if (existsSync(home)) rmSync(home, { recursive: true });
