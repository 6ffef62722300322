// Programs bounded in time, the processes of a home, and waiting for them without a fixed time.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

const PATIENCE_MS = 30_000;

// Waits until `holds` does, looking again and again; `now` tells what there is instead.
export async function eventually(what, holds, now = () => "", patience = PATIENCE_MS) {
  for (const end = performance.now() + patience; !holds(); ) {
    if (performance.now() > end) throw new Error(`never came true: ${what}; ${JSON.stringify(now())}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// The processes whose environment names a home, or that work in it.
export function processesOf({ home }) {
  const own = (pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      const works = readlinkSync(`/proc/${pid}/cwd`);
      if (!environment.includes(home) && !works.startsWith(home)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      return command.length > 0 ? [{ pid, command }] : []; // A zombie has none.
    } catch {
      return []; // It ended while we looked, or is another user's.
    }
  };
  return readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)).flatMap((pid) => own(Number(pid)));
}

export function end(pid, signal = "SIGKILL") {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}

// Starts a program; `ended` comes true on `event` with what it wrote and how it ended.
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
