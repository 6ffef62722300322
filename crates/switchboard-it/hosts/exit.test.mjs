// A host that is ended by a signal leaves no process behind.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HOSTS } from "./hosts.mjs";
import { inHome, nothingLeft } from "./home.mjs";
import { start } from "./launch.mjs";
import { eventually, processesOf } from "../pi/processes.mjs";
import { calls } from "./received.mjs";

const START_MS = 60_000;

for (const host of HOSTS) {
  for (const signal of ["SIGTERM", "SIGKILL"]) {
    test(`${signal} leaves no process (${host.label})`, { skip: host.ignores?.[signal] }, () =>
      inHome(host, { name: `exit-${signal}` }, async (world) => {
        const { child, ended } = start(world, [
          'CALL mcp {"tool":"everything_get-sum","args":{"a":2,"b":40}}',
          'CALL mcp {"tool":"files_list_allowed_directories"}',
          "HOLD",
        ]);
        const isThere = () => world.model.held > 0 || child.exitCode !== null;
        await eventually("the request is under way", isThere, () => calls(world.model), START_MS);
        const running = processesOf(world).map(({ command }) => command.join(" "));
        assert.ok(running.some((command) => /switchboard serve/.test(command)), `no gateway among ${running.join("\n")}`);
        child.kill(signal);
        await eventually(`the host ends by ${signal}`, () => child.exitCode !== null || child.signalCode !== null);
        await ended;
        await nothingLeft(world);
      }));
  }
}
