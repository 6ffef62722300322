// The hosts of this run. A host is an object:
//
//   name         as `switchboard install` and `serve --host` know it
//   label        the same, with the kind of model where a host treats models differently
//   hasPair      whether it is shown `mcp_write` beside `mcp`
//   tells        all that it tells of a server, where it shows neither definitions nor instructions
//   isError      whether a result is marked as an error, where the host can
//   errorCopies  how often it repeats the text of an error by itself
//   program      the command line that starts it
//   environment  its variables
//   settings     writes what it needs to talk to the fake model
//   servers      writes entries of MCP servers in its own form
//   headless     the arguments, and standard input, for a prompt
//   variable     the part of an entry that passes a variable on to a server
//   terminal     its terminal UI: what to write and type there, and what is seen
//   ways         how its model reaches a tool that is not among the definitions: see model/script.mjs
//   leaves       the processes that it leaves by itself
//   ignores      the signals that do not end it, with the reason

import { existsSync } from "node:fs";

import { claudeCode } from "./agents/claude-code.mjs";
import { cline } from "./agents/cline.mjs";
import { KINDS as CODEX } from "./agents/codex.mjs";
import { copilotCli } from "./agents/copilot-cli.mjs";
import { geminiCli } from "./agents/gemini-cli.mjs";
import { vibe } from "./agents/vibe.mjs";
import { opencode } from "./agents/opencode.mjs";
import { qwenCode } from "./agents/qwen-code.mjs";
import { packaged } from "./home.mjs";

const ALL = [claudeCode, ...CODEX, geminiCli, opencode, qwenCode, copilotCli, cline, vibe];
const named = process.env.HOSTS_NAMES.split(",");

// Most of the packages are for Linux on x86-64 only.
function isInstalled({ label, program }) {
  const exists = existsSync(program(packaged).at(-1));
  if (!exists) console.log(`skipped: ${label} (no program for this platform)`);
  return exists;
}

// Each host, once for every kind of model that it treats differently.
export const KINDS = ALL.filter(({ name }) => named.includes(name)).filter(isInstalled);

export const HOSTS = KINDS.filter(({ name, label }) => name === label);
