// The first request of a turn tells the model of the tool `mcp`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { KINDS } from "./hosts.mjs";
import { inHome } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { turns } from "./received.mjs";

for (const host of KINDS) {
  test(`the first request names mcp (${host.label})`, () =>
    inHome(host, { name: "seen" }, async (world) => {
      await prompt(world, ["SAY hello"]);
      const [first] = turns(world.model);
      console.log(host.label, first.tools.map(({ name, namespace }) => `${namespace ?? ""}.${name}`).join(" "));
      for (const m of first.raw.matchAll(/switchboard|\bmcp/gi)) console.log("   ", m.index, JSON.stringify(first.raw.slice(Math.max(0, m.index - 100), m.index + 150)));
    }));
}
