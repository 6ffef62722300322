// Starts hosts headless with a prompt and a time limit.

import { watch } from "../pi/processes.mjs";
import { note, packaged } from "./home.mjs";

const PATIENCE_MS = 90_000;

export const commandOf = ({ host }, args) => [...host.program(packaged), ...args];

// Starts the host with a prompt; `ended` resolves to its output and exit status.
export function start(world, lines, options = {}) {
  const prompt = ["Do this, a line each turn.", ...lines].join("\n");
  const { args, stdin } = world.host.headless(prompt, options);
  const surroundings = { env: world.env, cwd: world.project, stdio: ["pipe", "pipe", "pipe"] };
  // Not `close`: a daemon of the host may keep the pipes open.
  const bounds = { patienceMs: PATIENCE_MS, event: "exit" };
  const { child, ended } = watch(commandOf(world, args), surroundings, bounds);
  child.stdin.on("error", () => {}); // The host may exit before it has read its input.
  child.stdin.end(stdin ?? "");
  const noted = ended.then((ran) => {
    note(world, "host", { prompt, ...ran });
    return ran;
  });
  return { child, ended: noted };
}

// Runs one prompt to its end, without flags that skip permissions.
export async function prompt(world, lines, options) {
  const ran = await start(world, lines, options).ended;
  if (ran.code === 0) return ran;
  const { host, model, log } = world;
  const how = `${host.label} ended with ${ran.code ?? ran.signal} after ${model.requests.length} requests`;
  throw new Error(`${how} (see ${log})\n${ran.stderr.slice(-2000)}${ran.stdout.slice(-2000)}`);
}
