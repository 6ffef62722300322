// `/mcp` and `/mcp-auth`: requests to the running program, and commands of its command line.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

import { findProgram } from "./binary.ts";
import type { Board } from "./board.ts";
import { openPage } from "./dialogs.ts";
import type { Json } from "./link.ts";
import { askTrust } from "./trust.ts";

type Work = (words: string[], ctx: ExtensionContext) => Promise<void>;
type Child = ChildProcessWithoutNullStreams;
type OnFirstLine = (line: string, child: Child) => Promise<void>;

/** Commands of the command line that need no terminal. */
const SHELL = "add remove enable disable logout allow deny untrust import doctor describe instructions logs".split(" ");
/** Commands that take the name of a server. */
const NAMING = /^(tools|connect|reconnect|disconnect|trust|untrust|remove|enable|disable|logout|instructions|logs)\s+$/;

export function registerCommands(pi: ExtensionAPI, board: Board): void {
  const works = worksOf(board);
  const names = Object.keys(works);
  const handler = (line: string, ctx: ExtensionContext) =>
    board.reporting(ctx, async () => {
      const [command = "status", ...words] = wordsOf(line);
      if (!names.includes(command)) throw new Error(`/mcp has no \`${command}\`; it has: ${names.join(", ")}`);
      await works[command](words, ctx);
    });
  const getArgumentCompletions = (prefix: string) => {
    const lead = /^\S+\s+/.exec(prefix)?.[0];
    const servers = NAMING.test(lead ?? "") ? board.names().map((name) => lead + name) : [];
    return items(lead === undefined ? names : servers, prefix);
  };
  const mcp = { description: "MCP servers: status, tools, connect, search …", getArgumentCompletions, handler };
  pi.registerCommand("mcp", mcp);
  pi.registerCommand("pi-mcp", { ...mcp, description: "The same as /mcp" });
  pi.registerCommand("mcp-auth", {
    description: "Sign in to an MCP server",
    getArgumentCompletions: (prefix) => items(board.names(), prefix),
    handler: (line, ctx) => board.reporting(ctx, () => signIn(wordsOf(line)[0], board, ctx)),
  });
}

function worksOf(board: Board): Record<string, Work> {
  const answer = (method: string, params: (words: string[]) => Json): Work => async (words) =>
    board.say((await board.ask(`switchboard/${method}`, params(words))).text);
  const shell = (command: string): Work => async (words, ctx) =>
    board.say(await run([command, ...(command === "add" ? asCommand(words) : words)], board, ctx));
  return {
    status: answer("status", () => ({})),
    tools: answer("tools", ([server]) => ({ server })),
    prompts: answer("prompts", () => ({})),
    search: answer("search", (words) => ({ query: words.join(" ") })),
    connect: ([server], ctx) => (server === undefined ? chooseServer(board, ctx) : connect(board, server)),
    reconnect: async ([server]) => {
      await connect(board, server, true);
      board.tools.take((await board.ask("tools/list", {})).tools, true);
    },
    disconnect: answer("disconnect", ([server = ""]) => ({ server })),
    trust: ([server], ctx) => askTrust(board, ctx, server),
    setup: (_words, ctx) => setup(board, ctx),
    ...Object.fromEntries(SHELL.map((command) => [command, shell(command)])),
  };
}

function items(words: string[], prefix: string) {
  // A complete word is not offered: accepting it would cost another Enter.
  const fitting = words.filter((word) => word.startsWith(prefix) && word !== prefix);
  return fitting.length === 0 ? null : fitting.map((word) => ({ value: word, label: word }));
}

/** Inserts `--` before unknown options, because they belong to the program that is added. */
function asCommand([name = "", ...words]: string[]): string[] {
  const ours = /^(?!-)|^--(env|header|scope|transport|replace|json)\b|^--$/;
  return words.includes("--") || words.every((word) => ours.test(word)) ? [name, ...words] : [name, "--", ...words];
}

/** Splits words as a shell does, with quotes and backslashes only. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\])+/gs) ?? [];
  const quoted = /\\(.)|"((?:\\.|[^"\\])*)"|'([^']*)'/gs;
  const unquote = (_all: string, bare?: string, double?: string, single?: string) =>
    bare ?? single ?? double!.replace(/\\(.)/gs, "$1");
  return words.map((word) => word.replace(quoted, unquote));
}

/** Runs a command and returns its output; a failure is thrown. `onFirstLine` gets its first line while it runs. */
async function run(words: string[], board: Board, ctx: ExtensionContext, onFirstLine?: OnFirstLine): Promise<string> {
  const options = { cwd: ctx.cwd, stdio: "pipe", signal: board.ending.signal } as const;
  const child = spawn(findProgram(), ["--color", "never", ...words], options);
  child.stdin.on("error", () => {});
  let said = "";
  const hear = (text: string) => (said += text);
  child.stderr.setEncoding("utf8").on("data", hear);
  child.stdout.setEncoding("utf8").on("data", hear);
  if (onFirstLine === undefined) child.stdin.end();
  else createInterface(child.stdout).once("line", (line) => void onFirstLine(line, child).catch(() => child.kill()));
  const code = await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  // Replaces commands in hints by the commands of Pi.
  const here = (_all: string, command: string) => (command === "auth" ? "`/mcp-auth" : `\`/mcp ${command}`);
  const text = said.trim().replace(/`switchboard (?!token|setup)(\w+)/g, here);
  if (code === 0 || words[0] === "doctor") return text;
  throw new Error(text.replace(/^error: /, "") || `\`switchboard ${words[0]}\` ended with ${code}`);
}

async function connect(board: Board, server: string | undefined, again = false): Promise<void> {
  board.say((await board.ask("switchboard/connect", { server, again })).text);
}

async function signIn(named: string | undefined, board: Board, ctx: ExtensionContext): Promise<void> {
  const waiting = board.names((status) => status === "needs-auth");
  const choose = ctx.hasUI && named === undefined && waiting.length > 0;
  const server = choose ? await board.dialogs.inTurn(ctx, (ui) => ui.select("Sign in to", waiting)) : named;
  if (server === undefined) throw new Error("Name the server: /mcp-auth SERVER");
  const over = new AbortController();
  const onFirstLine = async (url: string, child: Child) => {
    board.say(`To sign in to ${server}, open this address:\n${url}`);
    if (!ctx.hasUI) return;
    if (ctx.mode === "tui") openPage(url);
    const title = "Sign in there. If the browser ends at a page that does not load, paste its address here:";
    const pasted = await board.dialogs.inTurn(ctx, (ui) => ui.input(title, ""), over.signal);
    if (pasted) child.stdin.write(`${pasted}\n`);
    else if (!over.signal.aborted) child.kill("SIGINT");
  };
  await run(["auth", server, "--paste"], board, ctx, onFirstLine).finally(() => over.abort());
  board.say(`Signed in to ${server}.`);
  await connect(board, server, true);
}

/** Runs the action that the user chooses; adding a server is always offered. */
async function choose(title: string, works: [string, () => Promise<void>][], board: Board, ctx: ExtensionContext) {
  const all = new Map([...works, ["Add a server …", () => addServer(board, ctx)]]);
  const chosen = await board.dialogs.inTurn(ctx, (ui) => ui.select(title, [...all.keys()]));
  if (chosen !== undefined) await all.get(chosen)!();
}

async function chooseServer(board: Board, ctx: ExtensionContext): Promise<void> {
  const usable = board.names((status) => !["connected", "disabled", "pending"].includes(status));
  await choose("Connect", usable.map((name) => [name, () => connect(board, name)]), board, ctx);
}

async function setup(board: Board, ctx: ExtensionContext): Promise<void> {
  const found = await run(["import", "--dry-run", "--json"], board, ctx);
  const { hosts } = JSON.parse(found.slice(found.indexOf("{")));
  const others: Json[] = hosts.filter(({ imported, files }: Json) => !imported && files.length > 0);
  const use = async (host: string) => board.say(await run(["import", host, "--yes"], board, ctx));
  const title = "Where do your servers come from?";
  await choose(title, others.map(({ host }) => [`Use the servers of ${host}`, () => use(host)]), board, ctx);
}

async function addServer(board: Board, ctx: ExtensionContext): Promise<void> {
  const [endpoint, name] = await board.dialogs.inTurn(ctx, async (ui) => {
    const endpoint = await ui.input("Its address (https://…), or the command that starts it (npx -y …)", "");
    return [endpoint, endpoint && (await ui.input("Its name (letters, digits, - and _)", ""))];
  });
  if (!endpoint || !name) return;
  const words = /^\w+:\/\//.test(endpoint) ? [endpoint] : ["--", ...wordsOf(endpoint)];
  board.say(await run(["add", name, ...words], board, ctx));
  await connect(board, name);
}
