// Mistral Vibe, whose model calls MCP tools from TypeScript.

import { appendFileSync } from "node:fs";
import { join } from "node:path";

import { writeText } from "../home.mjs";

const file = ({ home }) => join(home, ".vibe/config.toml");
const code = (tool, args) => `async function main() { return await tools.mcp_switchboard.${tool}(${args}) }`;

export const vibe = {
  name: "vibe",
  label: "vibe",
  hasPair: false,
  tells: /### Searchable connector groups[^#<]*- mcp_switchboard\b/, // The host shows only the names of servers.
  isError: ({ text }) => /^run_typescript failed/.test(text),
  errorCopies: 2, // The host adds the stack trace, which begins with the message.
  program: (packaged) => [packaged("vibe/venv/bin/vibe")],
  environment: () => ({ FAKE_KEY: "fake", MISTRAL_API_KEY: "fake" }),
  settings: (world) => writeText(file(world), `active_model = "fake"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "fake"
api_base = "${world.model.url}/v1"
api_key_env_var = "FAKE_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "fake"
provider = "fake"
alias = "fake"
`),
  servers: (world, entries) => {
    for (const [name, { command, args }] of Object.entries(entries)) {
      appendFileSync(file(world), `
[[mcp_servers]]
name = "${name}"
transport = "stdio"
command = "${command}"
args = ${JSON.stringify(args)}
`);
    }
  },
  headless: (prompt) => ({ args: ["--trust", "-p", prompt] }),
  ways: {
    load: {
      tool: "search_tool_functions",
      ask: (query) => ({ mode: "best_match", query }),
      args: { mode: "details", functions: ["mcp_switchboard.mcp"] },
    },
    carry: { tool: "run_typescript", args: (tool, args) => JSON.stringify({ code: code(tool, args) }) },
  },
};
