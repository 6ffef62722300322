// Copilot CLI, with a custom model provider.

import { join } from "node:path";

import { mergeJson, shaped } from "../home.mjs";
import { DOWN, ENTER } from "./keys.mjs";

export const copilotCli = {
  name: "copilot-cli",
  label: "copilot-cli",
  hasPair: true,
  // The program itself, because the wrapper of the package does not pass signals on.
  program: (packaged) => [packaged("copilot-cli/node_modules/@github/copilot-linux-x64/copilot")],
  environment: ({ model }) => ({
    COPILOT_PROVIDER_BASE_URL: `${model.url}/v1`,
    COPILOT_PROVIDER_API_KEY: "fake",
    COPILOT_MODEL: "gpt-4.1",
    COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "1000000", // Otherwise the host summarizes long conversations.
    COPILOT_OFFLINE: "true",
    COPILOT_AUTO_UPDATE: "false",
  }),
  settings: () => {},
  servers: ({ home }, entries) => {
    const mcpServers = shaped(entries, (entry) => ({ tools: ["*"], type: "local", ...entry }));
    mergeJson(join(home, ".copilot/mcp-config.json"), { mcpServers });
  },
  terminal: {
    // Without this flag the host asks, too, until the user chooses "don't ask again" for the directory.
    args: ["--disable-client-telemetry", "--allow-tool", "switchboard"],
    ready: /Manual Approval/,
    questions: [/Do you want to use this tool\?/, /switchboard needs information/],
    keys: [[/❯ 1\. Yes/, ENTER], [/❯ Deny/, DOWN], [/❯ Allow once/, ENTER]],
    settings: ({ home, project }) => mergeJson(join(home, ".copilot/config.json"), { trusted_folders: [project], banner: "never" }),
  },
  // The host's own approvals of writing tools are per directory, in permissions-config.json.
  headless: (prompt, { writes }) => ({
    args: ["--disable-client-telemetry", ...(writes ? ["--allow-tool", "switchboard"] : []), "-p", prompt],
  }),
  ways: {},
};
