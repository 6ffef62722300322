// Pi on a terminal: typed keys in, screen out.

import headless from "@xterm/headless";

import { commandOf } from "./pi.mjs";
import { openScreen } from "./screen.mjs";

const SIZE = { cols: 110, rows: 40 };
const PATIENCE_MS = 40_000;

// Calls `use` with the screen of a running Pi; `use` must end Pi.
export async function onTerminal(version, { env, project }, use) {
  const options = { env, cwd: project, ...SIZE, patienceMs: PATIENCE_MS };
  const screen = openScreen(headless.Terminal, commandOf(version, []), options);
  const { sees, until, type, enter, text } = screen;
  const seesNoMore = (pattern) => until(`no ${pattern}`, () => !pattern.test(text()));
  try {
    await use({ sees, seesNoMore, type, enter, screen: text });
    return await screen.ended;
  } finally {
    await screen.close("SIGKILL");
  }
}
