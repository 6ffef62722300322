// Codex, with each kind of model that it treats differently.

import { appendFileSync } from "node:fs";
import { join } from "node:path";

import { writeText } from "../home.mjs";
import { DOWN, ENTER } from "./keys.mjs";

const PROGRAM = "codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

const file = ({ home }) => join(home, ".codex/config.toml");

const codex = (kind) => ({
  name: "codex",
  hasPair: true,
  ownTools: ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"],
  program: (packaged) => [packaged(PROGRAM)],
  environment: () => ({ FAKE_KEY: "fake" }),
  settings: (world) => writeText(file(world), `model = "${kind.model}"
model_provider = "fake"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.fake]
name = "Fake"
base_url = "${world.model.url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`),
  servers: (world, entries) => {
    for (const [name, { command, args, ...more }] of Object.entries(entries)) {
      const lines = Object.entries({ command, args, ...more }).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
      appendFileSync(file(world), `\n[mcp_servers.${name}]\n${lines.join("")}`);
    }
  },
  variable: (name) => ({ env_vars: [name] }),
  terminal: {
    args: [],
    ready: /› Ask Codex/,
    questions: [/Allow .*write_file.*\?/, /Allow the switchboard MCP server/],
    keys: [[/› \d\. Deny/, DOWN], [/› \d\. Allow/, ENTER]],
    daemon: /app-server/,
    settings: (world) => appendFileSync(file(world), `
[projects."${world.project}"]
trust_level = "trusted"

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
`),
  },
  headless: (prompt) => ({ args: ["exec", "--skip-git-repo-check", prompt] }),
  ...kind,
});

const TOOL_SEARCH = { load: { tool: "tool_search", ask: (query) => ({ query }), args: { query: "switchboard mcp" } } };
const CODE_MODE = {
  carry: { tool: "exec", args: (tool, args) => `text(await tools.mcp__switchboard__${tool}(${args}))` },
};

// Codex marks errors only in results of its code mode; its API has no mark for plain calls.
const isErrorInCode = ({ as, text }) => as.type !== "custom_tool_call_output" || /"isError":true/.test(text);

export const KINDS = [
  codex({ label: "codex", model: "gpt-5.5", ways: TOOL_SEARCH }),
  codex({ label: "codex-code-mode", model: "gpt-6-sol", ways: CODE_MODE, isError: isErrorInCode }),
  codex({ label: "codex-plain", model: "unknown", ways: {} }),
];
