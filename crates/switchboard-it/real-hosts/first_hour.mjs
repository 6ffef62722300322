// The first commands and the first session in a fresh home: ten third-party servers, one server that
// never answers, and one program that does not exist.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { withRoots } from "./hosts.mjs";
import { TRANSPORTS, session } from "./session.mjs";
import { inWorld } from "./world.mjs";

const run = promisify(execFile);

// A program that reads and never answers.
const HANGING = { command: process.execPath, args: ["-e", "process.stdin.resume()"] };

// One tool of each server.
const KNOWN = {
  everything: "everything_echo",
  files: "files_read_text_file",
  memory: "memory_create_entities",
  time: "time_convert_time",
  git: "git_status",
  fetch: "fetch_fetch",
  context7: "context7_query-docs",
  fastmcp: "fastmcp_add",
  python2: "python2_add",
  python1: "python1_add",
};

// Creates a world with the stdio servers of `servers`, under short names.
const entries = (servers) => async (use) => {
  const named = {
    everything: "everything, stdio",
    files: "filesystem",
    memory: "memory",
    time: "time",
    git: "git",
    fetch: "fetch",
    context7: "context7",
    fastmcp: "FastMCP",
    python2: "Python SDK 2",
    python1: "Python SDK 1",
  };
  const found = {};
  for (const [name, title] of Object.entries(named)) {
    await servers[title].start((entry) => { found[name] = entry; });
  }
  const world = (place) => ({
    ...Object.fromEntries(Object.entries(found).map(([name, entry]) => [name, entry(place)])),
    hanging: HANGING,
    missing: { command: "no-such-program-anywhere" },
  });
  return inWorld(world, use);
};

// Runs a command; returns its output and its duration from the spawn.
async function timed(switchboard, { env, home }, ...args) {
  const started = performance.now();
  const { stdout, stderr, code = 0 } = await run(switchboard, args, { env, cwd: home }).catch((failed) => failed);
  return { stdout, stderr, code, ms: performance.now() - started };
}

// Later commands answer from the cache of the first one: they start no server and do not wait.
export const firstHour = (switchboard, usual, servers) => async () => {
  await entries(servers)(async (world) => {
    const first = await timed(switchboard, world, "search", "echo");
    assert.ok(first.ms < 8_000, `the first search took ${first.ms} ms`);
    console.log(`  first search: ${first.ms.toFixed(0)} ms`);
    assert.match(first.stderr, /hanging/, "it names the server that it waited for");
    // Lists the servers that were slower than the first command.
    for (const name of Object.keys(KNOWN)) await timed(switchboard, world, "connect", name);
    for (const args of [["status"], ["search", "echo"], ["tools"]]) {
      const { ms, stdout, stderr, code } = await timed(switchboard, world, ...args);
      assert.equal(code, 0, stderr);
      assert.ok(ms < 1_000, `\`${args.join(" ")}\` took ${ms} ms`);
      console.log(`  ${args[0]}: ${ms.toFixed(0)} ms`);
      if (args[0] === "tools") {
        for (const tool of Object.values(KNOWN)) assert.ok(stdout.includes(tool), `${tool} is listed`);
      }
      if (args[0] === "status") assert.match(stdout, /missing .*not found/, stdout);
    }
    // A call does not change the list, and listed tools can be called.
    const tools = async () => (await timed(switchboard, world, "tools", "everything")).stdout;
    const before = await tools();
    await timed(switchboard, world, "call", "everything_echo", "message=hi");
    assert.equal(await tools(), before);
    // A client with more capabilities gets more tools and can call them; the lists of other clients
    // stay the same.
    await TRANSPORTS.stdio(switchboard, world, (target) => session(withRoots, target, async ({ mcp }) => {
      await mcp({ connect: "everything" });
      assert.match(await mcp({ search: "get roots list" }), /everything_get-roots-list/);
      assert.match(await mcp({ tool: "everything_get-roots-list" }), /home/);
    }));
    assert.doesNotMatch(before, /get-roots-list/);
    assert.equal(await tools(), before);
  });
  // An agent in a home without cached listings: its first search waits for the lists.
  await entries(servers)(async (world) => {
    await TRANSPORTS.stdio(switchboard, world, (target) => session(usual, target, async ({ mcp }) => {
      // On a busy machine a server may start more slowly than the search waits. The answer names it as
      // starting, and a search after its connect finds its tools.
      const finds = async (query, server) => {
        const answer = await mcp({ search: query });
        if (answer.includes(KNOWN[server])) return answer;
        assert.match(answer, /still starting/, answer);
        console.log(`  ${server} is not listed within the first search`);
        await mcp({ connect: server });
        const later = await mcp({ search: query });
        assert.ok(later.includes(KNOWN[server]), later);
        return answer;
      };
      const answer = await finds("echo a message", "everything");
      assert.match(answer, /hanging/, "it names the server that still starts");
      assert.doesNotMatch(answer, /connect missing/, "it suggests no connect for a missing program");
      await finds("convert the time between time zones", "time");
    }));
  });
};
