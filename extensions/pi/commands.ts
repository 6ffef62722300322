// `/mcp` and `/mcp-auth`: what the running program answers, and commands of its command line.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

import { findProgram } from "./binary.ts";
import type { Board } from "./board.ts";
import { openPage } from "./dialogs.ts";
import type { Json } from "./link.ts";
import { askTrust } from "./trust.ts";

type Work = (words: string[], ctx: ExtensionContext) => Promise<void>;

/** Commands of the command line that need no terminal. */
const SHELL = "add remove enable disable logout allow deny untrust import doctor describe instructions".split(" ");

const ADD = "Add a server …";

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
    const [, lead, rest] = /^(\S+\s+)?(.*)$/.exec(prefix) ?? [];
    const words = lead === undefined ? names : serversOf(board).map(({ name }) => lead + name);
    return items(words, (lead ?? "") + rest);
  };
  const mcp = { description: "MCP servers: status, tools, connect, search …", getArgumentCompletions, handler };
  pi.registerCommand("mcp", mcp);
  pi.registerCommand("pi-mcp", { ...mcp, description: "The same as /mcp" });
  pi.registerCommand("mcp-auth", {
    description: "Sign in to an MCP server",
    getArgumentCompletions: (prefix) => items(serversOf(board).map(({ name }) => name), prefix),
    handler: (line, ctx) => board.reporting(ctx, () => signIn(wordsOf(line)[0], board, ctx)),
  });
}

function worksOf(board: Board): Record<string, Work> {
  const answer = (method: string, params: (words: string[]) => Json): Work => async (words) =>
    board.say((await board.ask(`switchboard/${method}`, params(words))).text);
  const shell = (command: string): Work => async (words, ctx) => board.say(await run([command, ...words], ctx));
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
    disconnect: answer("disconnect", ([server]) => ({ server })),
    trust: ([server], ctx) => askTrust(board, ctx, server),
    setup: (_words, ctx) => setup(board, ctx),
    ...Object.fromEntries(SHELL.map((command) => [command, shell(command)])),
  };
}

function serversOf(board: Board): Json[] {
  return board.status.servers;
}

function items(words: string[], prefix: string) {
  const fitting = words.filter((word) => word.startsWith(prefix));
  return fitting.length === 0 ? null : fitting.map((word) => ({ value: word, label: word }));
}

/** Words as in a shell, with quotes and backslashes and nothing else. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\])+/gs) ?? [];
  const quoted = /\\(.)|"((?:\\.|[^"\\])*)"|'([^']*)'/gs;
  const unquote = (_all: string, bare?: string, double?: string, single?: string) =>
    bare ?? single ?? double!.replace(/\\(.)/gs, "$1");
  return words.map((word) => word.replace(quoted, unquote));
}

/** What a command printed; its failure is an error. `talk` hears its first line while it runs. */
async function run(words: string[], ctx: ExtensionContext, talk?: Talk): Promise<string> {
  const child = spawn(findProgram(), ["--color", "never", ...words], { cwd: ctx.cwd, stdio: "pipe" });
  let said = "";
  const hear = (text: string) => (said += text);
  child.stderr.setEncoding("utf8").on("data", hear);
  child.stdout.setEncoding("utf8").on("data", hear);
  if (talk === undefined) child.stdin.end();
  else createInterface(child.stdout).once("line", (line) => void talk(line, child).catch(() => child.kill()));
  const code = await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  if (code !== 0) throw new Error(said.trim() || `\`switchboard ${words[0]}\` ended with ${code}`);
  return said.trim();
}

type Child = ChildProcessWithoutNullStreams;
type Talk = (line: string, child: Child) => Promise<void>;

async function connect(board: Board, server: string | undefined, again = false): Promise<void> {
  board.say((await board.ask("switchboard/connect", { server, again })).text);
}

async function signIn(named: string | undefined, board: Board, ctx: ExtensionContext): Promise<void> {
  const waiting = serversOf(board).filter(({ status }) => status === "needs-auth").map(({ name }) => name);
  const choose = ctx.hasUI && named === undefined && waiting.length > 0;
  const server = choose ? await ctx.ui.select("Sign in to", waiting) : named;
  if (server === undefined) throw new Error("Name the server: /mcp-auth SERVER");
  const over = new AbortController();
  const talk = async (url: string, child: Child) => {
    board.say(`To sign in to ${server}, open this address:\n${url}`);
    if (!ctx.hasUI) return;
    if (ctx.mode === "tui") openPage(url);
    const title = "Sign in there. If the browser ends at a page that does not load, paste its address here:";
    const pasted = await ctx.ui.input(title, "", { signal: over.signal });
    if (pasted) child.stdin.write(`${pasted}\n`);
    else if (!over.signal.aborted) child.kill("SIGINT");
  };
  await run(["auth", server, "--paste"], ctx, talk).finally(() => over.abort());
  board.say(`Signed in to ${server}.`);
  await connect(board, server, true);
}

async function chooseServer(board: Board, ctx: ExtensionContext): Promise<void> {
  if (!ctx.hasUI) throw new Error("Name the server: /mcp connect SERVER");
  const usable = serversOf(board).filter(({ status }) => !["connected", "disabled", "pending"].includes(status));
  const chosen = await ctx.ui.select("Connect", [...usable.map(({ name }) => name), ADD]);
  if (chosen === ADD) await addServer(board, ctx);
  else if (chosen !== undefined) await connect(board, chosen);
}

async function addServer(board: Board, ctx: ExtensionContext): Promise<void> {
  const example = "https://example.com/mcp or npx -y some-server";
  const endpoint = await ctx.ui.input("The address of the server, or the command that starts it", example);
  const name = endpoint && (await ctx.ui.input("What it is called here", "letters, digits, - and _"));
  if (!endpoint || !name) return;
  const words = /^\w+:\/\//.test(endpoint) ? [endpoint] : ["--", ...wordsOf(endpoint)];
  board.say(await run(["add", name, ...words], ctx));
  await connect(board, name);
}

async function setup(board: Board, ctx: ExtensionContext): Promise<void> {
  if (!ctx.hasUI) throw new Error("Set up in an interactive session, or with `switchboard setup` on a terminal.");
  const found = await run(["import", "--dry-run", "--json"], ctx);
  const { hosts } = JSON.parse(found.slice(found.indexOf("{")));
  const others: Json[] = hosts.filter(({ imported, files }: Json) => !imported && files.length > 0);
  const choices = new Map(others.map(({ host }) => [`Use the servers of ${host}`, host]));
  const chosen = await ctx.ui.select("Where do your servers come from?", [...choices.keys(), ADD]);
  if (chosen === ADD) await addServer(board, ctx);
  else if (chosen !== undefined) board.say(await run(["import", choices.get(chosen), "--yes"], ctx));
}
