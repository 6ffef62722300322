// Cline's command line.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

import { mergeJson, shaped } from "../home.mjs";
import { commandOf } from "../launch.mjs";

export const cline = {
  name: "cline",
  label: "cline",
  hasPair: false,
  isError: ({ text }) => /"isError":true/.test(text),
  ignores: { SIGTERM: "Cline does not end by SIGTERM while a request is under way" },
  leaves: /hub-daemon|cline-hub|\bhub\b/,
  program: (packaged) => [packaged("cline/node_modules/@cline/cli-linux-x64/bin/cline")],
  environment: () => ({ CLINE_TELEMETRY_DISABLED: "1", CLINE_NO_AUTO_UPDATE: "1" }),
  settings: async (world) => {
    const provider = ["openai-compatible", "-k", "fake", "-b", `${world.model.url}/v1`, "-m", "fake"];
    const [program, ...args] = commandOf(world, ["auth", ...provider]);
    await promisify(execFile)(program, args, { env: world.env, cwd: world.project, timeout: 60_000 });
  },
  servers: ({ home }, entries) => {
    const mcpServers = shaped(entries, (entry) => ({ transport: { type: "stdio", ...entry } }));
    mergeJson(join(home, ".cline/data/settings/cline_mcp_settings.json"), { mcpServers });
  },
  headless: (prompt) => ({ args: [prompt] }),
  ways: {},
};
