// A program on a terminal: its screen as a text, and the keys that it gets.

import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PTY = join(dirname(fileURLToPath(import.meta.url)), "terminal.py");
const LOOK_AGAIN_MS = 100; // What is waited for may be a file.

// Without what depends on where a line breaks, and without the frames of dialogs.
export const squeezed = (text) => text.replaceAll(/[\s│┃|╎▌▐]/g, "");

// Starts `command` on a screen of `Terminal`, which is that of @xterm/headless.
export function openScreen(Terminal, command, { env, cwd, cols, rows, patienceMs }) {
  const terminal = new Terminal({ cols, rows, allowProposedApi: true });
  const words = [PTY, String(cols), String(rows), ...command];
  const child = spawn("python3", words, { env, cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  terminal.onData((answer) => child.stdin.write(answer));
  child.stdin.on("error", () => {}); // It ended before it read everything.
  const looks = new Set();
  child.stdout.on("data", (bytes) => terminal.write(bytes, () => { for (const look of looks) look(); }));

  const text = () => {
    const { active } = terminal.buffer;
    const line = (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? "";
    return Array.from({ length: rows }, line).join("\n").trimEnd();
  };
  const until = (what, holds) => new Promise((resolve, reject) => {
    const give = (settle, value) => {
      looks.delete(look);
      clearTimeout(timer);
      clearInterval(again);
      settle(value);
    };
    const look = () => { if (holds()) give(resolve); };
    const timer = setTimeout(() => give(reject, new Error(`never seen: ${what}\n${text()}`)), patienceMs);
    const again = setInterval(look, LOOK_AGAIN_MS);
    looks.add(look);
    look();
  });
  const sees = (pattern) => until(pattern, () => pattern.test(text()));
  const type = (keys) => child.stdin.write(keys);
  // A line is pasted, so that no list of completions takes the Enter, which comes when its end is seen.
  const enter = async (line) => {
    type(`\x1b[200~${line}\x1b[201~`);
    const end = squeezed(line).slice(-12);
    await until(line, () => squeezed(text()).includes(end));
    type("\r");
  };
  const close = async (signal) => {
    child.kill(signal);
    await ended;
    terminal.dispose();
  };
  return { text, until, sees, type, enter, ended, close };
}
