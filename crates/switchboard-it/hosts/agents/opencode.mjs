// OpenCode.

import { join } from "node:path";

import { mergeJson, shaped } from "../home.mjs";

const file = ({ home }) => join(home, ".config/opencode/opencode.json");

const MODEL = {
  name: "Fake",
  tool_call: true,
  attachment: true,
  modalities: { input: ["text", "image"], output: ["text"] },
  limit: { context: 200_000, output: 8_000 },
};

export const opencode = {
  name: "opencode",
  label: "opencode",
  hasPair: false,
  program: (packaged) => [packaged("opencode/node_modules/opencode-linux-x64-baseline/bin/opencode")],
  environment: () => ({
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_SHARE: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  }),
  settings: (world) => {
    const options = { baseURL: `${world.model.url}/v1`, apiKey: "fake" };
    const fake = { npm: "@ai-sdk/openai-compatible", name: "Fake", options, models: { fake: MODEL } };
    mergeJson(file(world), {
      provider: { fake }, model: "fake/fake", small_model: "fake/fake", autoupdate: false, share: "disabled",
    });
  },
  servers: (world, entries) => {
    mergeJson(file(world), { mcp: shaped(entries, ({ command, args }) => ({ type: "local", command: [command, ...args] })) });
  },
  // On standard input, because the host would quote an argument.
  headless: (prompt) => ({ args: ["run"], stdin: prompt }),
  ways: {},
};
