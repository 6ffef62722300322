// A session of a host with `switchboard` over a transport, with the operations that the checks use.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { whileRunning } from "./world.mjs";

const textOf = ({ content }) => content.map((block) => block.text ?? "").join("\n");

// Each calls its last argument with the target through which a host reaches `switchboard` in a world.
export const TRANSPORTS = {
  stdio: (switchboard, { env, home }, use) => use({ command: switchboard, args: ["serve"], env, cwd: home }),
  HTTP: (switchboard, { env, home, own }, use) => {
    const words = [switchboard, "serve", "--http", "0"];
    return whileRunning(words, { env, cwd: home }, /^Serving MCP at (\S+)/, ([, url]) => {
      const token = readFileSync(join(own, "state/http-token"), "utf8").trim();
      return use({ url, headers: { Authorization: `Bearer ${token}` }, env, cwd: home });
    });
  },
};

export async function session(open, target, use) {
  const host = await open(target);
  const outcome = async (args, isError) => {
    const result = await host.request("tools/call", { name: "mcp", arguments: args });
    assert.equal(result.isError ?? false, isError, textOf(result));
    return textOf(result);
  };
  try {
    await use({
      asked: host.asked,
      pid: host.pid,
      mcp: (args) => outcome(args, false),
      fails: (args) => outcome(args, true),
      list: async (kind) => (await host.request(`${kind}/list`))[kind],
      read: async (uri) => {
        const { contents } = await host.request("resources/read", { uri });
        return contents.map(({ text }) => text).join("\n");
      },
      prompt: async (name, args) => {
        const { messages } = await host.request("prompts/get", { name, arguments: args });
        return messages.map(({ content }) => content.text).join("\n");
      },
    });
  } finally {
    await host.close();
  }
}
