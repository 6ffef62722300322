// A home of its own for `switchboard`, with servers by others in its configuration.

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

export const installed = (path) => join(here, "node_modules/@modelcontextprotocol", path);

export function world(python) {
  const home = mkdtempSync(join(tmpdir(), "real-hosts-"));
  const files = join(home, "files");
  mkdirSync(files);
  mkdirSync(join(home, "switchboard"));
  writeFileSync(join(files, "hello.txt"), "hello from a file\n");
  const node = (script, ...args) => ({ command: process.execPath, args: [script, ...args] });
  const mcpServers = {
    everything: node(installed("server-everything/dist/index.js")),
    files: node(installed("server-filesystem/dist/index.js"), files),
    python: { command: python, args: [join(here, "server.py")] },
  };
  writeFileSync(join(home, "switchboard/mcp.json"), JSON.stringify({ mcpServers }, null, 2));
  const env = { HOME: home, SWITCHBOARD_HOME: join(home, "switchboard"), PATH: process.env.PATH };
  return { home, files, env };
}

// The processes whose parent is `pid`, as the kernel tells.
export function childrenOf(pid) {
  const isChild = (entry) => {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid;
    } catch {
      return false; // It ended while we looked.
    }
  };
  return readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && isChild(entry));
}
