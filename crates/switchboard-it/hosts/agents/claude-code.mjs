// Claude Code.

import { join } from "node:path";

import { mergeJson, shaped } from "../home.mjs";
import { DOWN, ENTER, RIGHT } from "./keys.mjs";

export const claudeCode = {
  name: "claude-code",
  label: "claude-code",
  hasPair: true,
  isError: ({ error }) => error,
  program: (packaged) => [packaged("claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude")],
  environment: ({ model }) => ({
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "fake",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
  }),
  settings: () => {},
  servers: ({ home }, entries) => {
    const mcpServers = shaped(entries, (entry) => ({ type: "stdio", ...entry, env: {} }));
    mergeJson(join(home, ".claude.json"), { mcpServers });
  },
  terminal: {
    args: [],
    ready: /\? for shortcuts|shift\+tab to cycle/,
    questions: [/requests your input/, /Do you want to proceed\?/],
    keys: [
      [/❯ ✔ Decision: (▸ )?Allow once/, DOWN],
      [/❯ [*✔] Decision: ▸/, RIGHT],
      [/❯ ◯ Deny/, DOWN],
      [/❯ [◯◉●] Allow once/, ENTER],
      [/❯ Accept/, ENTER],
      [/❯ 1\. Yes/, ENTER],
    ],
    settings: ({ home, project }) => mergeJson(join(home, ".claude.json"), {
      hasCompletedOnboarding: true,
      theme: "dark",
      customApiKeyResponses: { approved: ["fake"], rejected: [] },
      projects: { [project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
    }),
  },
  headless: (prompt) => ({ args: ["-p", prompt] }),
  ways: {
    load: {
      tool: "ToolSearch",
      ask: (query) => ({ query }),
      args: { query: "select:mcp__switchboard__mcp,mcp__switchboard__mcp_write" },
    },
  },
};
