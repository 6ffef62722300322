// The cost of servers in Pi: with our extension, with the built-in MCP support, and with other
// extensions. Usage: node bench.mjs SWITCHBOARD EXTENSION [EXTENSION…]

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { encode } from "gpt-tokenizer/encoding/o200k_base";

const [switchboard, extension, ...others] = process.argv.slice(2);

// Uses the homes of the tests.
process.env.PI_TEST_SWITCHBOARD = switchboard;
process.env.PI_TEST_EXTENSION = extension;
const { inHome, ours } = await import("./home.mjs");
const { mcp, script, textOf } = await import("./model.mjs");
const { LATEST, commandOf, json } = await import("./pi.mjs");

const RUNS = 20;
const CALLS = 50;

const nameOf = (package_) => JSON.parse(readFileSync(join(package_, "package.json"), "utf8")).name;
const just = (...extensions) => ["-ne", ...extensions.flatMap((name) => ["-e", name])];
const SUBJECTS = {
  "Pi alone": just(),
  ...Object.fromEntries([extension, ...others].map((package_) => [nameOf(package_), just(package_)])),
  "built-in MCP": just("builtin:mcp", "builtin:codemode"),
};

const servers = (count) => (world) =>
  Object.fromEntries(Array.from({ length: count }, (_, number) => [`server${number}`, ours(world)]));

const middle = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)];

// Runs Pi for one prompt; returns the CPU milliseconds of Pi and of the processes that it waited for.
async function cpu({ env, project }, options) {
  const timed = 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>/dev/null';
  const pi = commandOf(LATEST, [...options, "-p", script("hello")]);
  const shell = spawn("bash", ["-c", timed, "bash", ...pi], { env, cwd: project, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  for await (const text of shell.stderr.setEncoding("utf8")) said += text;
  const [user, system] = said.trim().split(" ").map(Number);
  return 1_000 * (user + system);
}

// Subjects alternate, so that noise affects all alike; the first round fills caches.
const times = await inHome({ servers: servers(20) }, async (world) => {
  const times = Object.fromEntries(Object.keys(SUBJECTS).map((name) => [name, []]));
  for (let run = 0; run <= RUNS; run += 1) {
    for (const [name, options] of Object.entries(SUBJECTS)) {
      const time = await cpu(world, options);
      if (run > 0) times[name].push(time);
    }
  }
  return times;
});

// The tokens of the system prompt and the tools.
const context = (count) =>
  inHome({ servers: servers(count) }, async (world) => {
    const sizes = {};
    for (const [name, options] of Object.entries(SUBJECTS)) {
      for (const _first of ["fills caches", "counts"]) await cpu(world, options);
      const { messages, tools } = world.model.requests.at(-1);
      sizes[name] = encode(textOf(messages[0].content)).length + encode(JSON.stringify(tools)).length;
    }
    return sizes;
  });
const [two, twenty] = [await context(2), await context(20)];

// The median duration of a call to a running server, in milliseconds, as Pi measures it.
async function call(options) {
  const turns = Array.from({ length: CALLS + 1 }, () => mcp({ tool: "server0_count", args: {} }));
  const { ends } = await inHome({ servers: servers(1) }, (world) => json(LATEST, world, script(...turns), options));
  return middle(ends.slice(1).map(({ durationMs }) => durationMs));
}
const gateways = Object.entries(SUBJECTS).filter(([, options]) => options.some((word) => word.includes("/")));
const calls = Object.fromEntries(await Promise.all(gateways.map(async ([name, options]) => [name, await call(options)])));

const alone = "Pi alone";
console.log("| Pi 1.5 with | CPU ms of a start with 20 servers | added | tokens added, 2 servers | 20 servers | call, ms |");
console.log("|---|---|---|---|---|---|");
for (const name of Object.keys(SUBJECTS)) {
  const [time, bare] = [middle(times[name]), middle(times[alone])];
  const added = [time - bare, two[name] - two[alone], twenty[name] - twenty[alone]].map((number) => number.toFixed(0));
  console.log(`| ${name} | ${time.toFixed(0)} | ${added.join(" | ")} | ${calls[name] ?? "–"} |`);
}
