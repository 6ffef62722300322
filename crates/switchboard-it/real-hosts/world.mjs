// Homes for `switchboard` with third-party servers in its configuration, and their processes.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PATIENCE_MS = 30_000;

export const beside = (path) => join(dirname(fileURLToPath(import.meta.url)), path);
export const installed = (path) => beside(join("node_modules", path));

// Calls `use` with a home whose configuration is `mcpServers`, a function of it; removes the home.
export async function inWorld(mcpServers, use) {
  const home = mkdtempSync(join(tmpdir(), "real-hosts-"));
  const files = join(home, "files");
  const own = join(home, "switchboard");
  const env = { HOME: home, SWITCHBOARD_HOME: own, PATH: process.env.PATH };
  try {
    mkdirSync(files);
    mkdirSync(own);
    writeFileSync(join(files, "hello.txt"), "hello from a file\n");
    writeFileSync(join(own, "mcp.json"), JSON.stringify({ mcpServers: mcpServers({ home, files }) }));
    return await use({ home, files, own, env });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

// Starts a program, calls `use` with the first match of `pattern` on its stderr, and ends it.
export async function whileRunning([command, ...args], options, pattern, use) {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"], ...options });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const found = new Promise((resolve, reject) => {
    const said = [];
    createInterface(child.stderr).on("line", (line) => {
      said.push(line);
      const match = pattern.exec(line);
      if (match) resolve(match);
    });
    child.once("error", reject);
    const give = (why) => reject(new Error(`${command} ${args[0]} ${why}: ${said.join("\n")}`));
    ended.then(() => give("ended early"));
    setTimeout(() => give("is not ready"), PATIENCE_MS).unref();
  });
  try {
    return await use(await found);
  } finally {
    child.kill();
    await ended;
  }
}

// A port without a listener at the moment.
export async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

// Polls until `holds` is true.
export async function eventually(what, holds) {
  for (const end = performance.now() + PATIENCE_MS; !holds(); ) {
    if (performance.now() > end) throw new Error(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// The processes whose parent is `pid`.
export function childrenOf(pid) {
  const isChild = (entry) => {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid;
    } catch {
      return false; // The process ended in the meantime.
    }
  };
  const processes = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  return processes.filter(isChild).map(Number);
}
