// The first request of a turn tells the model of the tool `mcp`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cardOf } from "./card.mjs";
import { KINDS } from "./hosts.mjs";
import { inHome } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { answers, isOurs, plain, turns } from "./received.mjs";

// The length of the opening that must be in the prompt.
const OPENING = 60;

// Queries in everyday words.
const WISHES = ["sum two numbers", "read file", "send a message"];

// The passages of the prompt that mention Switchboard, for the failure message.
const mentions = ({ raw }) =>
  [...raw.matchAll(/switchboard/gi)].map(({ index }) => raw.slice(Math.max(0, index - 80), index + 120)).join("\n…");

for (const host of KINDS) {
  const tools = host.hasPair ? ["mcp", "mcp_write"] : ["mcp"];

  test(`the first request tells the model of ${tools.join(" and ")} (${host.label})`, () =>
    inHome(host, { name: "seen" }, async (world) => {
      await prompt(world, ["SAY hello"]);
      const [first] = turns(world.model);
      if (tools.every((tool) => first.tools.some(isOurs(tool)))) return;
      if (host.tells?.test(first.raw)) return;
      const { instructions, tools: [{ description = "(none)" } = {}] } = await cardOf(world);
      const isTold = (text) => first.raw.includes(JSON.stringify(text.slice(0, OPENING)).slice(1, -1));
      assert.ok(isTold(instructions) || isTold(description),
        `neither a definition nor the instructions are in the prompt, which says:\n${mentions(first)}`);
    }));

  if (host.ways.load === undefined) continue;
  test(`the host's own tool search finds mcp for everyday words (${host.label})`, () =>
    inHome(host, { name: "found" }, async (world) => {
      const { tool, ask } = host.ways.load;
      await prompt(world, [...WISHES.map((wish) => `CALL ${tool} ${JSON.stringify(ask(wish))}`), "SAY hello"]);
      const [first] = turns(world.model);
      if (first.tools.some(isOurs("mcp"))) return; // There is nothing to search for.
      for (const [index, answer] of answers(world.model).entries()) {
        assert.match(plain(answer), /mcp__switchboard|mcp_switchboard\.mcp/, `nothing found for "${WISHES[index]}"`);
      }
    }));
}
