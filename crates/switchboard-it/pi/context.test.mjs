// The tokens that the extension adds to the context of the model.

import assert from "node:assert/strict";
import { test } from "node:test";

import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

import { cli, everything, files, inHome, ours } from "./home.mjs";
import { script, textOf } from "./model.mjs";
import { VERSIONS, print } from "./pi.mjs";

const MOST_ADDED = 260;

const two = (world) => ({ everything: everything(), files: files(world) });
const twenty = (world) =>
  Object.fromEntries(Array.from({ length: 20 }, (_, number) => [`server-${number}`, ours(world)]));

// The tokens of the tools and the system prompt.
async function tokens(version, options) {
  return inHome(options, async (world) => {
    // As after a first use, with all servers listed.
    await cli(world, "tools");
    const { code, stderr } = await print(version, world, script("hello"));
    assert.equal(code, 0, stderr);
    const [{ tools, messages }] = world.model.requests;
    const system = messages.filter(({ role }) => role !== "user").map(({ content }) => textOf(content)).join("\n");
    // The system prompt contains the path of the home, which differs each time.
    return countTokens(JSON.stringify(tools)) + countTokens(system.replaceAll(world.home, "HOME"));
  });
}

for (const version of Object.keys(VERSIONS)) {
  test(`two servers and twenty add at most ${MOST_ADDED} tokens, and the same number (${version})`, async (context) => {
    const bare = await tokens(version, { pi: { extensions: ["-builtin:mcp"] } });
    const withTwo = (await tokens(version, { servers: two })) - bare;
    const withTwenty = (await tokens(version, { servers: twenty })) - bare;
    context.diagnostic(`${withTwo} tokens with two servers, ${withTwenty} with twenty, beside ${bare}`);
    assert.ok(withTwo > 0 && withTwo <= MOST_ADDED, `${withTwo}`);
    assert.equal(withTwenty, withTwo);
  });
}
