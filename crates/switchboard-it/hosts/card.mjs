// The instructions and tools that Switchboard gives to a host.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const CLIENT = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "card", version: "1" } };

export async function cardOf({ host, env, project }) {
  const child = spawn("switchboard", ["serve", "--host", host.name], { env, cwd: project, stdio: ["pipe", "pipe", "ignore"] });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  child.stdin.on("error", () => {}); // The program may reject the host and exit.
  const card = { instructions: "(none)", tools: [] };
  send({ id: 1, method: "initialize", params: CLIENT });
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, result } = JSON.parse(line);
    if (id === 1) {
      card.instructions = result.instructions ?? card.instructions;
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/list" });
    }
    if (id === 2) {
      card.tools = result.tools;
      child.stdin.end();
    }
  }
  return card;
}
