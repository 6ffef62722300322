// Pi, in each version that is supported, and the ways to run it.

import { spawn } from "node:child_process";

import { beside, installed } from "./home.mjs";

export const VERSIONS = {
  "1.5.0": beside("pi-1.5.0/package/dist/bundle/cli.js"),
  "0.87.1": installed("@earendil-works/pi-coding-agent/dist/cli.js"),
};
export const LATEST = "1.5.0";

const PATIENCE_MS = 60_000;

export const commandOf = (version, args) =>
  [process.execPath, VERSIONS[version], "--provider", "fake", "--model", "fake", "--no-session", ...args];

// Starts Pi; `ended` comes true with what it wrote and how it ended.
export function start(version, { env, project }, args, stdin = "ignore") {
  return watch(commandOf(version, args), { env, cwd: project }, stdin);
}

// Runs a command of Pi that has no session, such as `install`.
export const administer = (version, { env, project }, ...args) =>
  watch([process.execPath, VERSIONS[version], ...args], { env, cwd: project }, "ignore").ended;

function watch([program, ...args], options, stdin) {
  const child = spawn(program, args, { ...options, stdio: [stdin, "pipe", "pipe"] });
  const written = { stdout: "", stderr: "" };
  for (const stream of Object.keys(written)) {
    child[stream].setEncoding("utf8").on("data", (text) => { written[stream] += text; });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...written });
    });
  });
  return { child, ended };
}

// Runs one prompt in print mode.
export const print = (version, world, prompt, ...options) =>
  start(version, world, [...options, "-p", prompt]).ended;

// Runs one prompt in json mode, and gives the events.
export async function json(version, world, prompt, options = []) {
  const ran = await start(version, world, [...options, "--mode", "json", prompt]).ended;
  const events = ran.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { ...ran, events, ...toolEvents(events) };
}

// What became of the calls of tools, in their order.
export const toolEvents = (events) => ({
  starts: events.filter(({ type }) => type === "tool_execution_start"),
  updates: events.filter(({ type }) => type === "tool_execution_update"),
  ends: events.filter(({ type }) => type === "tool_execution_end"),
});
