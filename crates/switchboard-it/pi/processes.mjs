// Programs with a time limit, the processes of a home, and polling for a condition.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

const PATIENCE_MS = 30_000;

// Polls until `holds` is true; `now` describes the present state for the error.
export async function eventually(what, holds, now = () => "", patience = PATIENCE_MS) {
  for (const end = performance.now() + patience; !holds(); ) {
    if (performance.now() > end) throw new Error(`timed out: ${what}; ${JSON.stringify(now())}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// The processes whose environment contains the path of a home, or that have their directory in it.
export function processesOf({ home }) {
  const own = (pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      const works = readlinkSync(`/proc/${pid}/cwd`);
      if (!environment.includes(home) && !works.startsWith(home)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      return command.length > 0 ? [{ pid, command }] : []; // A zombie has no command line.
    } catch {
      return []; // The process ended in the meantime, or is another user's.
    }
  };
  return readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)).flatMap((pid) => own(Number(pid)));
}

export function end(pid, signal = "SIGKILL") {
  try {
    process.kill(pid, signal);
  } catch {
    // The process ended by itself.
  }
}

// Starts a program; on `event`, `ended` resolves to its output and exit status.
export function watch([program, ...args], options, { patienceMs, event = "close" }) {
  const child = spawn(program, args, options);
  const written = { stdout: "", stderr: "" };
  for (const stream of Object.keys(written)) {
    child[stream].setEncoding("utf8").on("data", (text) => { written[stream] += text; });
  }
  const timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once(event, (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, ...written });
    });
  });
  return { child, ended };
}
