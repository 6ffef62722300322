// Homes for Pi: a directory with its settings, the model, the servers, and a project to work in.

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { withModel } from "./model.mjs";
import { end, eventually, processesOf } from "./processes.mjs";

export { eventually, processesOf };

// The paths of the program and the extension under test.
export const SWITCHBOARD = process.env.PI_TEST_SWITCHBOARD;
export const EXTENSION = process.env.PI_TEST_EXTENSION;

export const beside = (path) => join(dirname(fileURLToPath(import.meta.url)), path);
export const installed = (path) => beside(join("node_modules", path));

const node = (script, ...args) => ({ command: process.execPath, args: [script, ...args] });
const official = (name) => installed(`@modelcontextprotocol/${name}/dist/index.js`);

// The servers of the tests, as entries of a configuration.
export const everything = () => node(official("server-everything"));
export const files = ({ project }) => node(official("server-filesystem"), project);
// Our own server, which logs the messages that it receives.
export const ours = ({ home }, ...args) => node(beside("server.mjs"), join(home, "told"), ...args);

// The settings that `switchboard install pi` writes, except for the path of the package.
const INSTALLED = { packages: [EXTENSION], extensions: ["-builtin:mcp"] };

// Calls `use` with a home whose user has the servers `servers`, a function of the home, in Pi's own
// file, and the extension in Pi's settings; checks that no process is left; removes the home.
export const inHome = ({ servers = () => ({}), settings = {}, pi = INSTALLED, binary = SWITCHBOARD }, use) =>
  withModel(async (model) => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), "pi-")));
    const agent = join(home, "agent");
    const project = join(home, "project");
    const env = {
      HOME: home,
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      PI_CODING_AGENT_DIR: agent,
      PI_OFFLINE: "1",
      PI_SKIP_VERSION_CHECK: "1",
      PI_TELEMETRY: "0",
      SWITCHBOARD_BIN: binary,
      SWITCHBOARD_HOME: join(home, "switchboard"),
      TERM: "xterm-256color",
    };
    const world = { home, agent, project, env, model };
    try {
      for (const folder of [agent, project]) mkdirSync(folder);
      writeFileSync(join(project, "hello.txt"), "hello from a file\n");
      writeJson(join(agent, "models.json"), { providers: { fake: provider(model.url) } });
      writeJson(join(agent, "settings.json"), { ...PI_SETTINGS, ...pi });
      writeJson(join(agent, "mcp.json"), { mcpServers: servers(world), settings });
      const result = await use(world);
      await eventually("no process is left", () => processesOf(world).length === 0, () => processesOf(world));
      return result;
    } finally {
      for (const { pid } of processesOf(world)) end(pid);
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    }
  });

const PI_SETTINGS = {
  defaultProvider: "fake",
  defaultModel: "fake",
  quietStartup: true,
};

const provider = (url) => ({
  baseUrl: url,
  api: "openai-completions",
  apiKey: "test",
  models: [{
    id: "fake",
    name: "Fake",
    input: ["text", "image"],
    contextWindow: 200_000,
    maxTokens: 8192,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  }],
});

// Runs the command line in a home.
export const cli = async ({ env, project }, ...args) =>
  (await promisify(execFile)(SWITCHBOARD, args, { env, cwd: project })).stdout;

export const writeJson = (path, value) => writeFileSync(path, JSON.stringify(value, null, 2));

// The messages that our server has received so far.
export function told({ home }) {
  try {
    return readFileSync(join(home, "told"), "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  } catch {
    return []; // The server has not started.
  }
}

// The gateways that run in a home.
export const gatewaysOf = (world) => processesOf(world).filter(({ command }) => command[1] === "serve");
