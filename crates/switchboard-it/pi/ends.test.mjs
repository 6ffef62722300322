// Each session starts one gateway, and leaves none, however it ends.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventually, gatewaysOf, inHome, ours, processesOf, told } from "./home.mjs";
import { mcp, script, toldByTools } from "./model.mjs";
import { VERSIONS, json, print, start } from "./pi.mjs";
import { rpc } from "./rpc.mjs";
import { onTerminal } from "./terminal.mjs";

const TIMES = Number(process.env.PI_TEST_ENDS);

const servers = (world) => ({ ours: ours(world) });
const COUNT = script(mcp({ tool: "ours_count" }));
const WAIT = script(mcp({ tool: "ours_wait" }));

// Shown by Pi after `/reload`, until a new session clears the screen.
const RELOADED = /^ Reloaded /m;

const nothingLeft = (world) =>
  eventually("no process is left", () => processesOf(world).length === 0, () => processesOf(world));

// Waits until exactly one gateway runs, other than `before`; returns its process id.
async function another(world, before) {
  const one = () => {
    const [gateway, second] = gatewaysOf(world);
    return gateway && !second && gateway.pid !== before;
  };
  await eventually("one other gateway runs", one, () => gatewaysOf(world));
  return gatewaysOf(world)[0].pid;
}

const calls = (world) => told(world).filter(({ method }) => method === "tools/call").length;

// The ways in which a session of one prompt ends.
const ENDS = {
  print: (version, world) => print(version, world, COUNT),
  json: (version, world) => json(version, world, COUNT),
  rpc: (version, world) => rpc(version, world, {}, (pi) => pi.prompt(COUNT)),
  ...Object.fromEntries(["SIGINT", "SIGTERM", "SIGHUP"].map((signal) => [signal, async (version, world) => {
    const before = calls(world);
    const { child, ended } = start(version, world, ["-p", WAIT]);
    await eventually("the server received the call", () => calls(world) > before, () => told(world));
    child.kill(signal);
    return ended;
  }])),
};

for (const version of Object.keys(VERSIONS)) {
  for (const [way, end] of Object.entries(ENDS)) {
    test(`${TIMES} sessions that end by ${way} leave no process (${version})`, () =>
      inHome({ servers }, async (world) => {
        for (let time = 0; time < TIMES; time += 1) {
          await end(version, world);
          await nothingLeft(world);
        }
      }));
  }

  test(`${TIMES} new sessions have one gateway each, although Pi emits two start events (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, {}, async (pi) => {
        let gateway;
        for (let time = 0; time < TIMES; time += 1) {
          await pi.prompt(COUNT);
          assert.equal(toldByTools(world.model.requests).at(-1), "counted");
          gateway = await another(world, gateway);
          await pi.command("new_session");
        }
        await another(world, gateway);
      })));

  test(`${TIMES} times /reload and /new have one gateway each (${version})`, () =>
    inHome({ servers }, (world) =>
      onTerminal(version, world, async ({ enter, sees, seesNoMore }) => {
        await sees(/MCP: 1 server/);
        let gateway = await another(world);
        for (let time = 0; time < TIMES; time += 1) {
          await enter("/reload");
          await sees(RELOADED);
          gateway = await another(world, gateway);
          await enter(script(mcp({ tool: "ours_count" }), `end ${time}`));
          await sees(new RegExp(`^ end ${time}`, "m"));
          await enter("/new");
          await seesNoMore(RELOADED);
          gateway = await another(world, gateway);
        }
        await enter("/quit");
      })));
}
