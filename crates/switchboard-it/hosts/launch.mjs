// Starts hosts: headless with a prompt, bounded in time.

import { spawn } from "node:child_process";

import { note, packaged } from "./home.mjs";

const PATIENCE_MS = 90_000;

export const commandOf = ({ host }, args) => [...host.program(packaged), ...args];

// Starts the host with a prompt; `ended` comes true with what it wrote and how it ended.
export function start(world, lines, options = {}) {
  const prompt = ["Do this, a line each turn.", ...lines].join("\n");
  const { args, stdin } = world.host.headless(prompt, options);
  const [program, ...words] = commandOf(world, args);
  const child = spawn(program, words, { env: world.env, cwd: world.project, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {}); // It ended before it read everything.
  child.stdin.end(stdin ?? "");
  const written = { stdout: "", stderr: "" };
  for (const stream of Object.keys(written)) {
    child[stream].setEncoding("utf8").on("data", (text) => { written[stream] += text; });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    // Not `close`: a daemon that a host leaves may keep the pipes open.
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      note(world, "host", { prompt, code, signal, ...written });
      resolve({ code, signal, ...written });
    });
  });
  return { child, ended };
}

// Runs one prompt to its end, with no flag that skips permissions.
export async function prompt(world, lines, options) {
  const ran = await start(world, lines, options).ended;
  if (ran.code === 0) return ran;
  const { host, model, log } = world;
  const how = `${host.label} ended with ${ran.code ?? ran.signal} after ${model.requests.length} requests`;
  throw new Error(`${how} (see ${log})\n${ran.stderr.slice(-2000)}${ran.stdout.slice(-2000)}`);
}
