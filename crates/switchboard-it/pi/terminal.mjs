// Pi on a terminal: what somebody types, and what they see.

import { spawn } from "node:child_process";

import headless from "@xterm/headless";

import { beside } from "./home.mjs";
import { commandOf } from "./pi.mjs";

const SIZE = { cols: 110, rows: 40 };
const PATIENCE_MS = 40_000;

// Without what depends on where a line breaks.
const squeezed = (text) => text.replaceAll(/\s/g, "");

// Calls `use` with a screen on which Pi runs; `use` has to end Pi.
export async function onTerminal(version, { env, project }, use) {
  const terminal = new headless.Terminal({ ...SIZE, allowProposedApi: true });
  const words = [beside("terminal.py"), String(SIZE.cols), String(SIZE.rows), ...commandOf(version, [])];
  const child = spawn("python3", words, { env, cwd: project, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  terminal.onData((answer) => child.stdin.write(answer));
  child.stdin.on("error", () => {}); // Pi ended before it read everything.
  const looks = new Set();
  child.stdout.on("data", (bytes) => terminal.write(bytes, () => { for (const look of looks) look(); }));

  const screen = () => {
    const { active } = terminal.buffer;
    const line = (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? "";
    return Array.from({ length: SIZE.rows }, line).join("\n").trimEnd();
  };

  const until = (what, holds) => new Promise((resolve, reject) => {
    const give = (settle, value) => {
      looks.delete(look);
      clearTimeout(timer);
      settle(value);
    };
    const look = () => { if (holds()) give(resolve); };
    const timer = setTimeout(() => give(reject, new Error(`never seen: ${what}\n${screen()}`)), PATIENCE_MS);
    looks.add(look);
    look();
  });
  const sees = (pattern) => until(pattern, () => pattern.test(screen()));
  const seesNoMore = (pattern) => until(`no ${pattern}`, () => !pattern.test(screen()));

  const type = (keys) => child.stdin.write(keys);
  // A line is pasted, so that no list of completions takes the Enter, which comes when the line is seen.
  const enter = async (line) => {
    type(`\x1b[200~${line}\x1b[201~`);
    await until(line, () => squeezed(screen()).includes(squeezed(line)));
    type("\r");
  };
  try {
    await use({ sees, seesNoMore, type, enter, screen });
    return await ended;
  } finally {
    child.kill("SIGKILL");
    terminal.dispose();
  }
}
