// Runs `switchboard` with third-party hosts, over stdio and HTTP, and with third-party servers.
// Usage: node drive.mjs SWITCHBOARD PYTHON1 PYTHON2, with that major version of the SDK in each.

import { commandLine, hostCheck, inHostsWorld, secondStart, serverCheck } from "./checks.mjs";
import { firstHour } from "./first_hour.mjs";
import { hosts as allHosts } from "./hosts.mjs";
import { servers as allServers } from "./servers.mjs";
import { TRANSPORTS } from "./session.mjs";

const [switchboard, python1, python2] = process.argv.slice(2);
const hosts = allHosts({ python1, python2 });
const servers = allServers({ python1, python2 });
const usual = hosts["TypeScript SDK 1"];

const DEADLINE_MS = 120_000;
const STEPS = ["list", "call", "resource", "prompt"];

let failures = 0;

// A check that hangs must not hang the run.
function overdue() {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error("took too long")), DEADLINE_MS).unref();
  });
}

// Runs a check, prints a line, and returns the text of its table cell.
async function report(name, check) {
  const started = performance.now();
  let outcome = "ok";
  try {
    await Promise.race([check(), overdue()]);
  } catch (error) {
    outcome = "FAILED";
    failures += 1;
    console.error(error);
  }
  console.log(`${outcome} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  return outcome;
}

const transports = Object.keys(TRANSPORTS);
const noneYet = Object.fromEntries(transports.map((transport) => [transport, ""]));
const hostRows = Object.fromEntries(Object.keys(hosts).map((host) => [host, { ...noneYet }]));
const serverRows = {};

const alone = () => inHostsWorld(switchboard, async (world) => {
  await report("command line", () => commandLine(switchboard, world));
  await TRANSPORTS.stdio(switchboard, world, (target) =>
    report("second start", () => secondStart(usual, target)));
});

const hostsOver = (transport) => inHostsWorld(switchboard, (world) =>
  TRANSPORTS[transport](switchboard, world, async (target) => {
    for (const [host, open] of Object.entries(hosts)) {
      const check = () => hostCheck(open, target, world.files);
      hostRows[host][transport] = await report(`host: ${host} over ${transport}`, check);
    }
  }));

async function serversBehind() {
  for (const [name, server] of Object.entries(servers)) {
    const shown = new Set();
    await report(`server: ${name}`, () => serverCheck(switchboard, usual, server, shown));
    const has = { list: true, ...server };
    const cell = (step) => (shown.has(step) ? (has[step] ? "ok" : "–") : "FAILED");
    serverRows[name] = Object.fromEntries(STEPS.map((step) => [step, cell(step)]));
  }
}

// Runs alone, because it measures how long commands take.
await report("first hour", firstHour(switchboard, usual, servers));
// Run in parallel, because most of the time is spent waiting for programs to start.
await Promise.all([alone(), ...transports.map(hostsOver), serversBehind()]);

function table(rows) {
  const names = Object.keys(rows);
  const columns = Object.keys(rows[names[0]]);
  const width = Math.max(...names.map((name) => name.length));
  const line = (name, cells) =>
    [name.padEnd(width), ...cells.map((cell) => cell.padEnd(8))].join("  ").trimEnd();
  return [line("", columns), ...names.map((name) => line(name, Object.values(rows[name])))].join("\n");
}

console.log(`\n${table(hostRows)}\n\n${table(serverRows)}`);
if (failures > 0) process.exit(1);
