// Requests of servers and of the program to the user and the model: Pi's own dialogs, one after the other.

import { spawn } from "node:child_process";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

import { fill } from "./form.ts";
import { type Json, RpcError } from "./link.ts";
import { fitting, plain } from "./render.ts";

/** The MCP error code for sampling that the user refuses. */
const REFUSED = -1;
const METHOD_NOT_FOUND = -32601;

/** Dialogs in which control characters of servers are removed. */
export interface Ui {
  select(title: string, options: string[]): Promise<string | undefined>;
  input(title: string, hint: string): Promise<string | undefined>;
  /** Enter alone declines: a dialog may appear while the user types. */
  agrees(title: string, text: string, yes: string): Promise<boolean>;
}

export class Dialogs {
  private turn: Promise<unknown> = Promise.resolve();

  /** Two dialogs at once would hide each other. */
  inTurn<T>(ctx: ExtensionContext, ask: (ui: Ui) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const asked = this.turn.then(() => {
      if (!ctx.hasUI) throw new RpcError(REFUSED, "the user cannot be asked in this mode of Pi");
      if (signal?.aborted) throw new RpcError(REFUSED, "the question was cancelled");
      return ask(uiOf(ctx, signal));
    });
    this.turn = asked.catch(() => {});
    return asked;
  }

  async answer(method: string, params: Json, ctx: ExtensionContext, signal: AbortSignal): Promise<unknown> {
    const asker = params._meta?.["switchboard/server"];
    switch (method) {
      case "ping":
        return {};
      case "roots/list":
        return { roots: [{ uri: pathToFileURL(ctx.cwd).href, name: basename(ctx.cwd) }] };
      case "elicitation/create":
        return this.inTurn(ctx, (ui) => (params.url ? visit(params, ui) : fill(params, ui, asker)), signal);
      case "sampling/createMessage":
        return this.inTurn(ctx, (ui) => sample(params, ui, asker ?? "A server", ctx, signal), signal);
      default:
        throw new RpcError(METHOD_NOT_FOUND, `\`${method}\` is not supported`);
    }
  }
}

function uiOf({ ui, mode }: ExtensionContext, signal?: AbortSignal): Ui {
  const select = async (title: string, options: string[]) => {
    const shown = options.map((option) => plain(option).replaceAll("\n", " "));
    return options[shown.indexOf((await ui.select(fitting(title, mode), shown, { signal })) ?? "")];
  };
  const agrees = async (title: string, text: string, yes: string) =>
    (await select(`${title}\n\n${text}`, ["No", yes])) === yes;
  return { select, agrees, input: (title, hint) => ui.input(plain(title), plain(hint), { signal }) };
}

const OPEN = "Open in the browser";

async function visit({ message, url }: Json, ui: Ui): Promise<Json> {
  const chosen = await ui.select(`${message}\n\n${url}`, ["Decline", "I open it myself", OPEN]);
  if (chosen === OPEN) openPage(url);
  return { action: chosen === undefined ? "cancel" : chosen === "Decline" ? "decline" : "accept" };
}

/** Passes the URL as one argument, never to a shell; the program has checked that it is a web page. */
export function openPage(url: string): void {
  if (!/^https?:\/\//.test(url)) return;
  const openers: Record<string, string[]> = { darwin: ["open"], win32: ["rundll32", "url.dll,FileProtocolHandler"] };
  const [program, ...args] = openers[process.platform] ?? [process.env.BROWSER || "xdg-open"];
  const opener = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  // Without a browser, the user can still read the URL on the screen.
  opener.on("error", () => {});
  opener.unref();
}

/** The user approves both directions: the request to the model, and the response to the server. */
async function sample(params: Json, ui: Ui, asker: string, ctx: ExtensionContext, signal: AbortSignal): Promise<Json> {
  const model = ctx.model;
  if (model === undefined) throw new RpcError(REFUSED, "no model is chosen in Pi");
  const messages = params.messages.map(toPi);
  const wanted = [params.systemPrompt, ...params.messages.map(shown)].filter(Boolean).join("\n\n");
  const asks = await ui.agrees(`${asker} requests a completion of your model (${model.id}):`, wanted, "Ask it");
  if (!asks) throw new RpcError(REFUSED, "the user declined the request to the model");
  const { maxTokens, temperature, systemPrompt } = params;
  const sent = { systemPrompt, messages };
  const answer: Json = await ctx.modelRegistry.complete(model, sent, { maxTokens, temperature, signal });
  if (answer.stopReason === "error") throw new Error(`the model failed: ${answer.errorMessage ?? "Unknown error"}`);
  const text = answer.content.map((block: Json) => (block.type === "text" ? block.text : "")).join("");
  const sends = await ui.agrees(`Send this answer to ${asker}?`, text, "Send it");
  if (!sends) throw new RpcError(REFUSED, "the user declined to send the answer of the model");
  const stopReason = answer.stopReason === "length" ? "maxTokens" : "endTurn";
  return { role: "assistant", content: { type: "text", text }, model: answer.model ?? model.id, stopReason };
}

const blocksOf = ({ content }: Json): Json[] => (Array.isArray(content) ? content : [content]);

function shown(message: Json): string {
  const parts = blocksOf(message).map((block) => (block.type === "text" ? block.text : `[${block.type}]`));
  return `${message.role}: ${parts.join("\n")}`;
}

function toPi(message: Json): any {
  const content = blocksOf(message).map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "image") return { type: "image", data: block.data, mimeType: block.mimeType };
    throw new RpcError(REFUSED, `content of the type \`${block.type}\` cannot be sent to the model`);
  });
  if (message.role === "user") return { role: "user", content, timestamp: Date.now() };
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const usage = { ...none, totalTokens: 0, cost: { ...none, total: 0 } };
  const origin = { api: "mcp", provider: "mcp", model: "mcp", usage, stopReason: "stop", timestamp: Date.now() };
  return { role: "assistant", content, ...origin };
}
