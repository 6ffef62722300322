// The checks of every third-party host and server, and those of a second start and the command line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { everything, filesystem } from "./servers.mjs";
import { TRANSPORTS, session } from "./session.mjs";
import { childrenOf, eventually, inWorld } from "./world.mjs";

const run = promisify(execFile);

// The world of all host checks: both servers are listed already, as after a first use.
export const inHostsWorld = (switchboard, use) =>
  inWorld((place) => ({ everything: everything(place), files: filesystem(place) }), async (world) => {
    for (const server of ["everything", "files"]) await cli(switchboard, world, "connect", server);
    await use(world);
  });

const cli = async (switchboard, { env, home }, ...args) =>
  (await run(switchboard, args, { env, cwd: home })).stdout;

// Checks one host over one transport.
export const hostCheck = (open, target, files) => session(open, target, async (host) => {
  const { mcp, fails, list, read, prompt } = host;
  assert.deepEqual((await list("tools")).map(({ name }) => name), ["mcp"]);
  assert.match(await mcp({ search: "read a file as text" }), /files_read_text_file\(path: string/);
  assert.equal(await mcp({ tool: "everything_echo", args: { message: "hi" } }), "Echo: hi");
  assert.match(await fails({ tool: "files_read_text_file", args: { path: "/etc/passwd" } }), /denied/i);

  const prompts = (await list("prompts")).map(({ name }) => name);
  assert.ok(prompts.includes("everything_args-prompt"), `prompts pass through: ${prompts}`);
  assert.equal(await prompt("everything_args-prompt", { city: "Oslo" }), "What's weather in Oslo?");
  const uri = "demo://resource/static/document/features.md";
  const resources = (await list("resources")).map((resource) => resource.uri);
  assert.ok(resources.includes(uri), `resources pass through: ${resources}`);
  assert.match(await read(uri), /^# Everything Server/);

  const path = join(mkdtempSync(join(files, "host-")), "written.txt");
  await (host.asked ? agreeing(host, path) : unable(host, path));
});

// With elicitation, the user approves a destructive tool and answers a form of a server.
async function agreeing({ mcp, asked }, path) {
  await mcp({ tool: "files_write_file", args: { path, content: "by a tool" } });
  assert.equal(readFileSync(path, "utf8"), "by a tool");
  assert.equal(asked.length, 1, "a destructive tool requires approval");
  assert.match(asked[0], /write_file/);
  assert.match(await mcp({ tool: "everything_trigger-elicitation-request" }), /- Name: Ada/);
  assert.equal(asked.length, 2, "the elicitation of a server arrives");
}

// Without elicitation, a destructive tool does not run.
async function unable({ fails }, path) {
  assert.match(await fails({ tool: "files_write_file", args: { path, content: "by a tool" } }), /^approval/);
  assert.ok(!existsSync(path));
}

// Checks one server behind Switchboard: list, call, resource and prompt, or empty lists without them.
// `shown` gets the steps that passed.
export const serverCheck = (switchboard, open, { start, call, resource, prompt }, shown) =>
  start((entry) => inWorld((place) => ({ it: entry(place) }), (world) =>
    TRANSPORTS.stdio(switchboard, world, (target) => session(open, target, async (host) => {
      assert.match(await host.mcp({ connect: "it" }), /^it \(\d+ tools?/);
      assert.match(await host.mcp({ server: "it" }), new RegExp(`^- it_${call.tool}: `, "m"));
      shown.add("list");
      assert.match(await host.mcp({ tool: `it_${call.tool}`, args: call.args }), call.says);
      shown.add("call");

      const resources = (await host.list("resources")).map(({ uri }) => uri);
      if (resource) {
        assert.ok(resources.includes(resource.uri), `resources: ${resources}`);
        assert.match(await host.read(resource.uri), resource.says);
        assert.match(await host.mcp({ tool: `it_${resource.tool}` }), resource.says);
      } else {
        assert.deepEqual(resources, []);
      }
      shown.add("resource");

      const prompts = (await host.list("prompts")).map(({ name }) => name);
      if (prompt) {
        const name = `it_${prompt.name}`;
        assert.ok(prompts.includes(name), `prompts: ${prompts}`);
        assert.match(await host.prompt(name, prompt.args), prompt.says);
      } else {
        assert.deepEqual(prompts, []);
      }
      shown.add("prompt");
    }))));

// A new process starts servers only when they are used, and answers from the cache without them.
export const secondStart = async (open, target) => {
  await session(open, target, async ({ mcp, pid }) => {
    for (const server of ["everything", "files"]) await mcp({ connect: server });
    // Both request roots: their shared connection closes, and the session's own stays.
    const keepers = () => childrenOf(pid).flatMap((reaper) => childrenOf(reaper));
    await eventually("a process for each server", () => keepers().length === 2);
  });
  await session(open, target, async ({ mcp, pid }) => {
    assert.match(await mcp({}), /^MCP: 0\/2 servers/);
    assert.match(await mcp({ server: "files" }), /files_read_text_file/);
    assert.match(await mcp({ search: "echo a message" }), /everything_echo/);
    assert.match(await mcp({ describe: "files_write_file" }), /content: string/);
    assert.deepEqual(childrenOf(pid), []);
  });
};

export const commandLine = async (switchboard, world) => {
  const ask = (...args) => cli(switchboard, world, ...args);
  assert.match(await ask("search", "read", "text", "file"), /files_read_text_file/);
  assert.match(await ask("describe", "everything_echo"), /message: string/);
  assert.equal(await ask("call", "everything_echo", "message=hi"), "Echo: hi\n");
  const path = join(world.files, "hello.txt");
  assert.equal(await ask("call", "files_read_text_file", `path=${path}`), "hello from a file\n");
};
