// Homes for hosts: an empty HOME, a project, the fake model, and the host's settings.

import { execFile } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import { withModel } from "./model/server.mjs";
import { end, eventually, processesOf } from "../pi/processes.mjs";

// The program under test, the folder that holds the packages of each host, and the one for logs.
const { HOSTS_SWITCHBOARD: SWITCHBOARD, HOSTS_PACKAGES: PACKAGES, HOSTS_LOGS: LOGS } = process.env;

const PATIENCE_MS = 30_000;

export const packaged = (path) => join(PACKAGES, path);
const server = (name) => packaged(`common/node_modules/@modelcontextprotocol/${name}/dist/index.js`);

// The two servers of every scenario. `files` may use the project, which hosts also name as a root.
export const servers = ({ project }) => ({
  everything: { command: process.execPath, args: [server("server-everything")] },
  files: { command: process.execPath, args: [server("server-filesystem"), project] },
});

// The PATH: Switchboard, the host (`install` reads its version from its package), Node, the system.
const searched = (host) => {
  const programs = [SWITCHBOARD, ...host.program(packaged).filter((word) => word.startsWith("/")).slice(0, 1), process.execPath];
  return [...programs.map((program) => dirname(program)), "/usr/local/bin", "/usr/bin", "/bin"];
};

// Calls `use` with a home in which `host` is configured as `setup` says: `none`, `direct` or `installed`
// (see below). Fails if a process is left, except those that `host` leaves itself. `place` sets the path
// of the home, for tests that need the same one each time.
export const inHome = (host, { name, setup = installed, place }, use) =>
  withModel(host.ways, async (model) => {
    if (place) mkdirSync(place);
    const home = realpathSync(place ?? mkdtempSync(join(tmpdir(), "host-")));
    const project = join(home, "project");
    const world = { host, home, project, model, log: join(LOGS, `${name}-${host.label}.log`) };
    world.env = {
      HOME: home,
      PATH: searched(host).join(":"),
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      DO_NOT_TRACK: "1",
      ...host.environment(world),
    };
    try {
      mkdirSync(project);
      mkdirSync(LOGS, { recursive: true });
      writeFileSync(world.log, "");
      await host.settings(world);
      await setup(world);
      const result = await use(world);
      await nothingLeft(world);
      return result;
    } finally {
      for (const { url, body, reply, failed } of model.requests) note(world, "request", { url, body, reply, failed });
      for (const { pid } of processesOf(world)) end(pid);
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    }
  });

// Waits until every process that was started in the home has ended.
export const nothingLeft = (world) => {
  const left = () => processesOf(world).filter(({ command }) => !world.host.leaves?.test(command.join(" ")));
  return eventually("no process is left", () => left().length === 0, left);
};

// Setup: no MCP server.
export const none = () => {};

// Setup: the two servers in the host's own configuration.
export const direct = (world) => world.host.servers(world, servers(world));

// Setup: the two servers in Switchboard's configuration, and Switchboard in the host's.
export async function installed(world) {
  writeJson(join(world.home, ".config/switchboard/mcp.json"), { mcpServers: servers(world) });
  await cli(world, "install", world.host.name, "--yes");
}

// Runs the command line in a home; returns its standard output.
export async function cli({ env, project, ...world }, ...args) {
  const options = { env, cwd: project, timeout: PATIENCE_MS };
  const { stdout, stderr } = await promisify(execFile)(SWITCHBOARD, args, options);
  note(world, `switchboard ${args.join(" ")}`, { stdout, stderr });
  return stdout;
}

// Logs an event, for tests that fail.
export const note = ({ log }, what, value) => appendFileSync(log, `${what}: ${JSON.stringify(value)}\n`);

export function writeText(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

// Entries of servers in the format of a host: `shape` converts one entry.
export const shaped = (entries, shape) =>
  Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, shape(entry)]));

export const writeJson = (path, value) => writeText(path, `${JSON.stringify(value, null, 2)}\n`);

// Merges `more` into a JSON file, one level deep, so that several parts of a setup can write to it.
export function mergeJson(path, more) {
  let kept = {};
  try {
    kept = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // The file does not exist yet.
  }
  writeJson(path, { ...kept, ...more });
}
