// The hosts of this run. A host is an object:
//
//   name         its name for `switchboard install` and `serve --host`
//   label        the name, with the kind of model if the host treats models differently
//   hasPair      whether it is shown `mcp_write` beside `mcp`
//   tells        matches the prompt if the host names a server but shows no definitions or instructions
//   isError      whether a result is marked as an error, if the host marks errors
//   errorCopies  how often the host itself repeats the text of an error
//   program      its command line
//   environment  its environment variables
//   settings     writes the settings that connect it to the fake model
//   servers      writes entries of MCP servers in its own format
//   headless     the arguments and standard input for a prompt
//   variable     the part of an entry that passes an environment variable on to a server
//   terminal     its terminal UI: settings, keys, and patterns of its screens
//   ways         how its model calls a tool without a definition in the request: see model/script.mjs
//   leaves       matches processes that the host leaves running
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

// Each host, once for each kind of model that it treats differently.
export const KINDS = ALL.filter(({ name }) => named.includes(name)).filter(isInstalled);

export const HOSTS = KINDS.filter(({ name, label }) => name === label);
