// A host on a terminal: what the user types, and what they see.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { note, packaged } from "./home.mjs";
import { commandOf } from "./launch.mjs";

const headless = createRequire(packaged("common/"))("@xterm/headless");

const PTY = join(dirname(fileURLToPath(import.meta.url)), "../pi/terminal.py");
const SIZE = { cols: 110, rows: 45 };
const PATIENCE_MS = 60_000;

// Without what depends on where a line breaks, and without the frames of dialogs.
export const squeezed = (text) => text.replaceAll(/[\s│┃|╎▌▐]/g, "");

// Calls `use` with a screen on which the host runs, and ends the host.
export async function onTerminal(world, use) {
  const { env, project, host } = world;
  const terminal = new headless.Terminal({ ...SIZE, allowProposedApi: true });
  const words = [PTY, String(SIZE.cols), String(SIZE.rows), ...commandOf(world, host.terminal.args)];
  const child = spawn("python3", words, { env, cwd: project, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  terminal.onData((answer) => child.stdin.write(answer));
  child.stdin.on("error", () => {}); // The host ended before it read everything.
  const looks = new Set();
  child.stdout.on("data", (bytes) => terminal.write(bytes, () => { for (const look of looks) look(); }));

  const text = () => {
    const { active } = terminal.buffer;
    const line = (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? "";
    return Array.from({ length: SIZE.rows }, line).join("\n").trimEnd();
  };
  const until = (what, holds) => new Promise((resolve, reject) => {
    const give = (settle, value) => {
      looks.delete(look);
      clearTimeout(timer);
      clearInterval(again);
      settle(value);
    };
    const look = () => { if (holds()) give(resolve); };
    const timer = setTimeout(() => give(reject, new Error(`never seen: ${what}\n${text()}`)), PATIENCE_MS);
    const again = setInterval(look, 100); // What is waited for may be a file.
    looks.add(look);
    look();
  });
  const sees = (pattern) => until(pattern, () => pattern.test(text()));
  const type = (keys) => child.stdin.write(keys);
  // Types a key until it has its effect: dialogs take no keys in their first moment.
  const press = async (keys, what, hasEffect) => {
    const again = setInterval(() => type(keys), 1_000);
    try {
      type(keys);
      await until(what, hasEffect);
    } finally {
      clearInterval(again);
    }
  };
  // A text is pasted, so that no list of completions takes the Enter, which comes when its end is seen.
  const enter = async (line) => {
    type(`\x1b[200~${line}\x1b[201~`);
    const end = squeezed(line).slice(-12);
    await until(line, () => squeezed(text()).includes(end));
    type("\r");
  };
  try {
    return await use({ sees, until, press, enter, text });
  } finally {
    note(world, "screen", text().split("\n"));
    child.kill("SIGTERM"); // The terminal goes away, as when its window is closed.
    await ended;
    terminal.dispose();
  }
}
