// Qwen Code.

import { join } from "node:path";

import { mergeJson, shaped } from "../home.mjs";

const file = ({ home }) => join(home, ".qwen/settings.json");

export const qwenCode = {
  name: "qwen-code",
  label: "qwen-code",
  hasPair: false,
  errorCopies: 2, // The host shows the result of a failed call, and then its content again.
  // The program itself, because the wrapper of the package does not pass signals on.
  program: (packaged) => [process.execPath, packaged("qwen-code/node_modules/@qwen-code/qwen-code/cli.js")],
  environment: ({ model }) => ({
    OPENAI_API_KEY: "fake",
    OPENAI_BASE_URL: `${model.url}/v1`,
    OPENAI_MODEL: "fake",
    QWEN_TELEMETRY_ENABLED: "false",
  }),
  settings: () => {},
  servers: (world, entries) => {
    mergeJson(file(world), { mcpServers: shaped(entries, (entry) => ({ ...entry, trust: true })) });
  },
  headless: (prompt) => ({ args: ["--auth-type", "openai", "-p", prompt] }),
  ways: {
    load: { tool: "tool_search", ask: (query) => ({ query }), args: { query: "select:mcp__switchboard__mcp" } },
    carry: {
      tool: "tool_call",
      args: (tool, args) => `{"name":"mcp__switchboard__${tool}","arguments":${args}}`,
    },
  },
};
