// The extension of Pi: translates between Pi and `switchboard serve --host pi`, which decides.

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

import { Board } from "./board.ts";
import { registerCommands } from "./commands.ts";

export default function (pi: ExtensionAPI): void {
  const board = new Board(pi);
  pi.on("session_start", (event, ctx) => board.begin(ctx, event.reason));
  pi.on("before_agent_start", (_event, ctx) => board.beforeRequest(ctx));
  pi.on("input", (event, ctx) => board.promptTyped(event, ctx));
  pi.on("tool_result", (event) => board.tools.flagOf(event.toolCallId));
  pi.on("session_shutdown", () => board.end());
  registerCommands(pi, board);
}
