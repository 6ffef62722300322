// Pi in each supported version, and the ways to run it.

import { beside, installed } from "./home.mjs";
import { watch } from "./processes.mjs";

export const VERSIONS = {
  "1.5.0": beside("pi-1.5.0/package/dist/bundle/cli.js"),
  "0.87.1": installed("@earendil-works/pi-coding-agent/dist/cli.js"),
};
export const LATEST = "1.5.0";

const PATIENCE_MS = 60_000;

export const commandOf = (version, args) =>
  [process.execPath, VERSIONS[version], "--provider", "fake", "--model", "fake", "--no-session", ...args];

// Starts Pi; `ended` resolves to its output and exit status.
export function start(version, { env, project }, args, stdin = "ignore") {
  return run(commandOf(version, args), { env, cwd: project }, stdin);
}

// Runs a command of Pi without a session, such as `install`.
export const administer = (version, { env, project }, ...args) =>
  run([process.execPath, VERSIONS[version], ...args], { env, cwd: project }, "ignore").ended;

function run(command, options, stdin) {
  return watch(command, { ...options, stdio: [stdin, "pipe", "pipe"] }, { patienceMs: PATIENCE_MS });
}

// Runs one prompt in print mode.
export const print = (version, world, prompt, ...options) =>
  start(version, world, [...options, "-p", prompt]).ended;

// Runs one prompt in json mode; returns the events.
export async function json(version, world, prompt, options = []) {
  const ran = await start(version, world, [...options, "--mode", "json", prompt]).ended;
  const events = ran.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { ...ran, events, ...toolEvents(events) };
}

// The events of tool calls, in order.
export const toolEvents = (events) => ({
  starts: events.filter(({ type }) => type === "tool_execution_start"),
  updates: events.filter(({ type }) => type === "tool_execution_update"),
  ends: events.filter(({ type }) => type === "tool_execution_end"),
});
