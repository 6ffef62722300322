// Commands of the user: `/mcp` with its subcommands, `/mcp-auth`, and the prompts of servers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventually, everything, inHome, ours } from "./home.mjs";
import { textOf } from "./model.mjs";
import { LATEST, VERSIONS, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";

const servers = (world) => ({ everything: everything(), ours: ours(world) });

const COMMANDS = ["mcp", "pi-mcp", "mcp-auth", "mcp__everything__args-prompt"];

// A command line, and its expected output.
const LINES = [
  ["/mcp connect everything", /everything[^]*\d+ tools/],
  ["/mcp connect ours", /ours[^]*13 tools/],
  ["/mcp", /^MCP: 2\/2 servers, \d+ tools\n[^]*everything[^]*ours/],
  ["/mcp status", /^MCP: 2\/2 servers/],
  ["/pi-mcp status", /^MCP: 2\/2 servers/],
  ["/mcp tools", /get-sum[^]*ours_count/],
  ["/mcp tools ours", /^(?![^]*get-sum)[^]*ours_count/],
  ["/mcp search add two numbers", /everything_get-sum/],
  ["/mcp prompts", /mcp__everything__args-prompt/],
  ["/mcp reconnect ours", /ours[^]*13 tools/],
  ["/mcp reconnect", /everything[^]*ours/],
  ["/mcp disconnect ours", /ours/],
  ["/mcp status", /^MCP: 1\/2 servers/],
  ["/mcp connect nonesuch", /nonesuch/],
  ["/mcp frobnicate", /\/mcp has no `frobnicate`; it has: status, tools/],
  ["/mcp-auth", /\/mcp-auth SERVER/],
  ["/mcp-auth nonesuch", /nonesuch/],
  ["/mcp__everything__args-prompt", /Missing required argument: city\.\nUsage: \/mcp__everything__args-prompt <city>/],
];

for (const version of Object.keys(VERSIONS)) {
  test(`every subcommand of /mcp answers (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, {}, async (pi) => {
        for (const [line, shows] of LINES) assert.match(await pi.slash(line), shows, line);
        assert.deepEqual(world.model.requests, [], "the model received no request");
        const { commands } = await pi.command("get_commands");
        const names = commands.map(({ name }) => name);
        for (const name of COMMANDS) assert.ok(names.includes(name), name);
      })));

  test(`a prompt of a server goes to the model (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, {}, async (pi) => {
        await pi.slash("/mcp connect everything");
        await pi.slash("/mcp prompts");
        const since = pi.events.length;
        await pi.command("prompt", { message: "/mcp__everything__args-prompt Oslo state='a b'" });
        await pi.until("the end of the run", ({ type }) => type === "agent_settled", since);
        const [{ messages }] = world.model.requests;
        assert.equal(textOf(messages.at(-1).content), "What's weather in Oslo, a b?");
      })));

  test(`servers are added, turned off and on, and removed (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, {}, async (pi) => {
        const { command, args } = ours(world);
        assert.match(await pi.slash(`/mcp add third -- ${[command, ...args].join(" ")}`), /third/);
        await pi.untilShown("/mcp connect third", /13 tools/);
        await pi.slash("/mcp disable third");
        await pi.untilShown("/mcp status", /1 disabled/);
        await eventually("the footer shows the disabled server", () => /1 disabled/.test(pi.footer()), () => pi.footer());
        await pi.slash("/mcp enable third");
        await pi.untilShown("/mcp status", /^(?![^]*disabled)/);
        await pi.slash("/mcp remove third");
        await pi.untilShown("/mcp status", /^(?![^]*third)/);
      })));
}

test("/mcp connect without a name lets the user choose, or add a server", () =>
  inHome({ servers }, (world) => {
    const answers = ["ours", "Add a server …", `${process.execPath} ${ours(world).args.join(" ")}`, "third"];
    return rpc(LATEST, world, { answers: () => answers.shift() }, async (pi) => {
      await pi.until("the footer", ({ method }) => method === "setStatus");
      assert.match(await pi.slash("/mcp connect"), /ours[^]*13 tools/);
      assert.match(await pi.slash("/mcp connect"), /third/);
      assert.deepEqual(answers, []);
    });
  }));

// The settings of the footer, and its expected text.
const FOOTERS = [
  [{}, /^🔌 MCP: 2 servers \(\d connected\)$/],
  [{ showStatusIcon: false }, /^MCP: 2 servers \(\d connected\)$/],
  [{ mcpFooterStatus: "compact" }, /^MCP \d\/2$/],
];

test("settings change the footer", async () => {
  for (const [settings, shows] of FOOTERS) {
    await inHome({ servers, settings }, (world) =>
      rpc(LATEST, world, {}, async (pi) => {
        await pi.until("the footer", ({ method, statusText }) => method === "setStatus" && statusText);
        assert.match(pi.footer(), shows);
      }));
  }
  await inHome({ servers, settings: { mcpFooterStatus: "off", notifyOnStartupConnect: false } }, (world) =>
    rpc(LATEST, world, {}, async (pi) => {
      assert.match(await pi.slash("/mcp status"), /^MCP: /);
      assert.equal(pi.footer(), undefined);
      assert.equal(pi.notices().length, 1);
    }));
});

test("in print mode /mcp status goes to standard error", () =>
  inHome({ servers }, async (world) => {
    const { code, stdout, stderr } = await print(LATEST, world, "/mcp status");
    assert.equal(code, 0);
    // Pi reserves standard output for the answer of the model.
    assert.equal(stdout, "");
    assert.match(stderr, /^MCP: \d\/2 servers/);
    assert.deepEqual(world.model.requests, []);
  }));
