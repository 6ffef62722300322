// What servers, and the program itself, ask of the user and of the model: Pi's own dialogs, one after the other.

import { spawn } from "node:child_process";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

import { fill } from "./form.ts";
import { type Json, RpcError } from "./link.ts";

/** What a client answers whose user says no to sampling. */
const REFUSED = -1;
const METHOD_NOT_FOUND = -32601;

export class Dialogs {
  private turn: Promise<unknown> = Promise.resolve();

  async answer(method: string, params: Json, ctx: ExtensionContext, signal: AbortSignal): Promise<unknown> {
    switch (method) {
      case "ping":
        return {};
      case "roots/list":
        return { roots: [{ uri: pathToFileURL(ctx.cwd).href, name: basename(ctx.cwd) }] };
      case "elicitation/create": {
        const ask = params.url === undefined ? fill : visit;
        return this.inTurn(ctx, signal, () => ask(params, ctx, signal));
      }
      case "sampling/createMessage":
        return this.inTurn(ctx, signal, () => sample(params, ctx, signal));
      default:
        throw new RpcError(METHOD_NOT_FOUND, `\`${method}\` is not offered here`);
    }
  }

  /** Two dialogs at once would hide each other. */
  private inTurn<T>(ctx: ExtensionContext, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const asked = this.turn.then(() => {
      if (!ctx.hasUI) throw new RpcError(REFUSED, "nobody can be asked in this mode of Pi");
      if (signal.aborted) throw new RpcError(REFUSED, "the question was taken back");
      return ask();
    });
    this.turn = asked.catch(() => {});
    return asked;
  }
}

const OPEN = "Open in the browser";

async function visit({ message, url }: Json, ctx: ExtensionContext, signal: AbortSignal): Promise<Json> {
  const chosen = await ctx.ui.select(`${message}\n\n${url}`, [OPEN, "I open it myself", "Decline"], { signal });
  if (chosen === undefined) return { action: "cancel" };
  if (chosen === "Decline") return { action: "decline" };
  if (chosen === OPEN) openPage(url);
  return { action: "accept" };
}

/** The address is one argument of a program, never text for a shell; the program saw to it that it is a web page. */
export function openPage(url: string): void {
  if (!/^https?:\/\//.test(url)) return;
  const openers: Record<string, string[]> = { darwin: ["open"], win32: ["rundll32", "url.dll,FileProtocolHandler"] };
  const [program, ...args] = openers[process.platform] ?? [process.env.BROWSER || "xdg-open"];
  const opener = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  // Without a browser the address is on the screen still.
  opener.on("error", () => {});
  opener.unref();
}

/** Both ways are shown: what goes to the model, and what goes back to the server. */
async function sample(params: Json, ctx: ExtensionContext, signal: AbortSignal): Promise<Json> {
  const model = ctx.model;
  if (model === undefined) throw new RpcError(REFUSED, "no model is chosen in Pi");
  const server = params._meta?.["switchboard/server"] ?? "A server";
  const messages = params.messages.map(toPi);
  const wanted = [params.systemPrompt, ...params.messages.map(shown)].filter(Boolean).join("\n\n");
  const agreed = await ctx.ui.confirm(`${server} asks your model (${model.id})`, bounded(wanted), { signal });
  if (!agreed) throw new RpcError(REFUSED, "the user declined the request to the model");
  const { maxTokens, temperature, systemPrompt } = params;
  const options = { maxTokens, temperature, signal };
  const answer: Json = await ctx.modelRegistry.complete(model, { systemPrompt, messages }, options);
  if (answer.stopReason === "error") throw new Error(`the model failed: ${answer.errorMessage ?? "Unknown error"}`);
  const text = answer.content.map((block: Json) => (block.type === "text" ? block.text : "")).join("");
  if (!(await ctx.ui.confirm(`Send this answer to ${server}?`, bounded(text), { signal }))) {
    throw new RpcError(REFUSED, "the user declined to send the answer of the model");
  }
  const stopReason = answer.stopReason === "length" ? "maxTokens" : "endTurn";
  return { role: "assistant", content: { type: "text", text }, model: answer.model ?? model.id, stopReason };
}

function blocksOf({ content }: Json): Json[] {
  return Array.isArray(content) ? content : [content];
}

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
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
  const origin = { api: "mcp", provider: "mcp", model: "mcp", usage, stopReason: "stop" };
  return { role: "assistant", content, ...origin, timestamp: Date.now() };
}

function bounded(text: string): string {
  return text.length > 4_000 ? `${text.slice(0, 4_000)}\n(${text.length} characters, not all are shown)` : text;
}
