// Gemini CLI.

import { join } from "node:path";

import { mergeJson, shaped } from "../home.mjs";

const file = ({ home }) => join(home, ".gemini/settings.json");

export const geminiCli = {
  name: "gemini-cli",
  label: "gemini-cli",
  hasPair: true,
  isError: ({ error }) => error,
  program: (packaged) => [process.execPath, packaged("gemini-cli/node_modules/@google/gemini-cli/bundle/gemini.js")],
  environment: ({ model }) => ({
    GEMINI_API_KEY: "fake",
    GOOGLE_GEMINI_BASE_URL: model.url,
    GEMINI_TELEMETRY_ENABLED: "false",
    GEMINI_CLI_NO_RELAUNCH: "true",
    GEMINI_CLI_TRUST_WORKSPACE: "true",
  }),
  settings: (world) => mergeJson(file(world), {
    security: { auth: { selectedType: "gemini-api-key" } },
    privacy: { usageStatisticsEnabled: false },
    general: { enableAutoUpdate: false },
  }),
  // Headless, the host hides tools of untrusted servers from the model.
  servers: (world, entries) => {
    mergeJson(file(world), { mcpServers: shaped(entries, (entry) => ({ ...entry, trust: true })) });
  },
  variable: (name) => ({ env: { [name]: `$${name}` } }),
  headless: (prompt) => ({ args: ["-m", "gemini-2.5-pro", "-p", prompt] }),
  ways: {},
};
