// What Switchboard adds to a request, in tokens, against no MCP server and against the same two directly.

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

// The most that a request may grow.
const BUDGET = { pair: 400, single: 330 };

// Hosts do not wait for every server: the request is made again until all tools are known.
const TRIES = 2;
const isWhole = ({ raw }) => raw.includes("get-sum") && raw.includes("write_file");

// As in a later session, when the listings of the servers are kept.
async function listed(world) {
  await installed(world);
  await cli(world, "search", "sum of two numbers");
}

// The first request of a turn. The path of the home is in the prompt: it is the same for all.
const request = (host, setup, kind) =>
  inHome(host, { name: `tokens-${kind}`, setup, place: join(tmpdir(), `host-${process.pid}`) }, async (world) => {
    await prompt(world, ["SAY hello"]);
    const [first] = turns(world.model);
    return first;
  });

// Ids are random, and so is their length in tokens.
const ID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;
const tokens = ({ raw }) => encode(raw.replaceAll(ID, "id")).length;

// The definitions that came with Switchboard.
function definitionsAdded(without, ours) {
  const known = new Set(without.tools.map(({ name }) => name));
  // A namespace is the definition of several tools.
  const added = new Set(ours.tools.filter(({ name }) => !known.has(name)).map(({ definition }) => definition));
  return [...added].map((definition) =>
    ({ name: definition.name ?? definition.function.name, tokens: encode(JSON.stringify(definition)).length }));
}

// Tokens of the tools that the host adds by itself as soon as there is any MCP server, whatever that offers.
const ofTheHost = ({ ownTools }, without, ours) => definitionsAdded(without, ours)
  .filter(({ name }) => ownTools?.includes(name)).reduce((sum, { tokens }) => sum + tokens, 0);

// Where the tokens are: each definition, and all else together.
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
