// The tokens that Switchboard adds to a request, compared with no MCP server and with two direct ones.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { KINDS } from "./hosts.mjs";
import { cli, direct, inHome, installed, none, packaged } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { turns } from "./received.mjs";

const { encode } = createRequire(packaged("common/"))("gpt-tokenizer/encoding/o200k_base");

// The largest allowed growth of a request, in tokens.
const BUDGET = { pair: 400, single: 330 };

// Hosts do not wait for every server: the request is repeated until it has all tools.
const TRIES = 2;
const isWhole = ({ raw }) => raw.includes("get-sum") && raw.includes("write_file");

// As in a later session, with cached listings of the servers.
async function listed(world) {
  await installed(world);
  await cli(world, "search", "sum of two numbers");
}

// The first request of a turn. The prompt contains the path of the home, which must not vary.
const request = (host, setup, kind) =>
  inHome(host, { name: `tokens-${kind}`, setup, place: join(tmpdir(), `host-${process.pid}`) }, async (world) => {
    await prompt(world, ["SAY hello"]);
    const [first] = turns(world.model);
    return first;
  });

// Ids are random, and their length in tokens varies.
const ID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
const tokens = ({ raw }) => encode(raw.replaceAll(ID, "id")).length;

// The definitions that Switchboard adds.
function definitionsAdded(without, ours) {
  const known = new Set(without.tools.map(({ name }) => name));
  // The tools of a namespace share one definition.
  const added = new Set(ours.tools.filter(({ name }) => !known.has(name)).map(({ definition }) => definition));
  return [...added].map((definition) =>
    ({ name: definition.name ?? definition.function.name, tokens: encode(JSON.stringify(definition)).length }));
}

// Tokens of the tools that the host itself adds as soon as it has any MCP server.
const ofTheHost = ({ ownTools }, without, ours) => definitionsAdded(without, ours)
  .filter(({ name }) => ownTools?.includes(name)).reduce((sum, { tokens }) => sum + tokens, 0);

// The added tokens of each definition, and of the rest together.
function shares(without, ours) {
  const definitions = definitionsAdded(without, ours);
  const rest = definitions.reduce((left, { tokens }) => left - tokens, tokens(ours) - tokens(without));
  return [...definitions, { name: "all else", tokens: rest }].map(({ name, tokens }) => `${name} ${tokens}`).join(", ");
}

const rows = [];
after(() => console.log([
  "| host | no MCP | two servers directly | Switchboard | added | the host's own part |",
  "|---|---|---|---|---|---|",
  ...rows.map((row) => `| ${row.map((cell) => cell.toLocaleString("en")).join(" | ")} |`),
].join("\n")));

for (const host of KINDS) {
  const budget = host.hasPair ? BUDGET.pair : BUDGET.single;
  test(`at most ${budget} tokens are added to a request (${host.label})`, async () => {
    const without = await request(host, none, "none");
    let all;
    for (let tried = 0; tried < TRIES && !(all && isWhole(all)); tried += 1) all = await request(host, direct, "direct");
    const ours = await request(host, listed, "switchboard");
    const added = tokens(ours) - tokens(without);
    const own = ofTheHost(host, without, ours);
    rows.push([host.label, ...[without, all, ours].map(tokens), added, own]);
    assert.ok(added - own <= budget, `${added} tokens are added: ${shares(without, ours)}`);
  });
}
