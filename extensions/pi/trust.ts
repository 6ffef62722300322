// Pending servers of a project: the exact definition is shown, and only the user approves it.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

import type { Board } from "./board.ts";
import type { Json } from "./link.ts";
import { CUT, fitting } from "./render.ts";

/** Asks the user whether to trust each pending server, or one of them. */
export async function askTrust(board: Board, ctx: ExtensionContext, server?: string): Promise<void> {
  const { pending } = await board.ask("switchboard/pending", {});
  const meant: Json[] = pending.filter((one: Json) => server === undefined || one.server === server);
  if (meant.length === 0) return board.say(server ? `${server} needs no approval.` : "No server needs your approval.");
  if (!ctx.hasUI) throw new Error("Servers of a project are approved in an interactive session of Pi.");
  if (ctx.isProjectTrusted?.() === false) {
    const names = meant.map((one) => one.server).join(", ");
    return board.say(`MCP: ${names} of this project stay off, because you do not trust the project in Pi.`, "warning");
  }
  for (const { server, hash, changed, text } of meant) {
    const title = `Trust the ${changed ? "changed " : ""}server ${server} of this project?`;
    // A definition that was cut cannot be approved.
    if (fitting(`${title}\n\n${text}`, ctx.mode).endsWith(CUT))
      board.say(`${server} is too long to be shown here; look at it with \`switchboard trust\` in a shell.`);
    else if (await board.dialogs.inTurn(ctx, (ui) => ui.agrees(title, text, "Trust it")))
      board.say((await board.ask("switchboard/trust", { server, hash })).text);
    else board.say(`${server} stays off; \`/mcp trust\` asks again.`);
  }
}
