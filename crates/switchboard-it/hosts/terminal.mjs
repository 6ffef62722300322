// A host on a terminal: typed keys in, screen out.

import { createRequire } from "node:module";

import { openScreen } from "../pi/screen.mjs";
import { note, packaged } from "./home.mjs";
import { commandOf } from "./launch.mjs";

const headless = createRequire(packaged("common/"))("@xterm/headless");

const SIZE = { cols: 110, rows: 45 };
const PATIENCE_MS = 60_000;

// Calls `use` with the screen of a running host, and ends the host.
export async function onTerminal(world, use) {
  const { env, project, host } = world;
  const options = { env, cwd: project, ...SIZE, patienceMs: PATIENCE_MS };
  const screen = openScreen(headless.Terminal, commandOf(world, host.terminal.args), options);
  const { sees, until, type, enter, text } = screen;
  // Repeats a key until it has its effect: dialogs ignore keys in their first moment.
  const press = async (keys, what, hasEffect) => {
    const again = setInterval(() => type(keys), 1_000);
    try {
      type(keys);
      await until(what, hasEffect);
    } finally {
      clearInterval(again);
    }
  };
  try {
    return await use({ sees, until, press, enter, text });
  } finally {
    note(world, "screen", text().split("\n"));
    await screen.close("SIGTERM"); // As when the terminal window is closed.
  }
}
