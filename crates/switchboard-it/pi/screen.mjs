// A program on a terminal: keys in, screen text out.

import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PTY = join(dirname(fileURLToPath(import.meta.url)), "terminal.py");
const LOOK_AGAIN_MS = 100; // The condition may depend on a file, not on the screen.

// Removes white space, which depends on line breaks, and the frames of dialogs.
export const squeezed = (text) => text.replaceAll(/[\s│┃|╎▌▐]/g, "");

// Starts `command` on a screen of `Terminal`, the class of @xterm/headless.
export function openScreen(Terminal, command, { env, cwd, cols, rows, patienceMs }) {
  const terminal = new Terminal({ cols, rows, allowProposedApi: true });
  const words = [PTY, String(cols), String(rows), ...command];
  const child = spawn("python3", words, { env, cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  terminal.onData((answer) => child.stdin.write(answer));
  child.stdin.on("error", () => {}); // The program may exit before it has read its input.
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
    const timer = setTimeout(() => give(reject, new Error(`timed out: ${what}\n${text()}`)), patienceMs);
    const again = setInterval(look, LOOK_AGAIN_MS);
    looks.add(look);
    look();
  });
  const sees = (pattern) => until(pattern, () => pattern.test(text()));
  const type = (keys) => child.stdin.write(keys);
  // Pastes the line, so that no completion list takes the Enter, which follows once its end is visible.
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
