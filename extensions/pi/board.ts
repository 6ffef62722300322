// One session of Pi: the program `switchboard`, its tools and prompts, and its messages for the user.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

import { findProgram } from "./binary.ts";
import { Dialogs } from "./dialogs.ts";
import { type LinkHandler, type Json, Link, type RequestOptions } from "./link.ts";
import { plain } from "./render.ts";
import { Tools } from "./tools.ts";
import { askTrust } from "./trust.ts";

const REVISION = "2025-11-25";
/** How long a request to the model may wait for the list of tools, which connects no server. */
const LISTING_MS = 5_000;
/** How long the program may take to start, on a busy machine. */
const START_MS = 30_000;
const SEVERE = ["error", "critical", "alert", "emergency"];
type Level = "info" | "warning" | "error";
/** How Pi continues with a line that the user typed. */
type Typed = { action: "transform"; text: string } | { action: "handled" } | undefined;

export class Board implements LinkHandler {
  readonly tools: Tools;
  /** The last status from the program. */
  status: Json = { servers: [] };
  readonly dialogs = new Dialogs();
  /** The context for dialogs and messages. */
  ctx!: ExtensionContext;
  /** Set when the program is started; its tools are listed later. */
  private link: Link | undefined;
  private started: Promise<Link> | undefined;
  private prompts: Json[] = [];
  private over = false;
  /** Fires when the session ends. */
  readonly ending = new AbortController();

  constructor(private readonly pi: ExtensionAPI) {
    this.tools = new Tools(pi, this);
  }

  /** Starts the program in the background, once: Pi may send `session_start` twice. */
  begin(ctx: ExtensionContext, reason: string): void {
    this.ctx = ctx;
    if (this.started === undefined) this.again(() => this.greet(reason));
  }

  /** Waits briefly until the program has listed its tools. Waits for no server. */
  async beforeRequest(ctx: ExtensionContext): Promise<void> {
    this.ctx = ctx;
    const late = new Promise<void>((resolve) => setTimeout(resolve, LISTING_MS).unref());
    await Promise.race([this.connected().then(() => {}, () => {}), late]);
  }

  async end(): Promise<void> {
    this.over = true;
    this.ending.abort();
    await this.link?.close();
  }

  /** Sends a request to the program, which is started if necessary. */
  async ask(method: string, params: Json, options?: RequestOptions): Promise<any> {
    return (await this.connected()).request(method, params, options);
  }

  /** Shows a message to the user: on the screen, or on standard error without one. */
  say(text: string | undefined, level: Level = "info", ctx: ExtensionContext = this.ctx): void {
    if (this.over || !text) return;
    if (ctx.hasUI) ctx.ui.notify(plain(text), level);
    else process.stderr.write(`${plain(text)}\n`);
  }

  /** Reports the failure of a command to the user. */
  async reporting(ctx: ExtensionContext, work: () => Promise<void>): Promise<void> {
    this.ctx = ctx;
    await work().catch((error) => this.say(error.message, "error", ctx));
  }

  /** A prompt command that was typed before Pi knew it, as with `pi -p`. */
  async promptTyped({ text, source }: Json, ctx: ExtensionContext): Promise<Typed> {
    // Text from a server's prompt is not a command of the user.
    const [, command, line] = (source !== "extension" && /^\/(mcp__\S+)\s*([^]*)$/.exec(text)) || [];
    if (command === undefined) return undefined;
    let typed: Typed = { action: "handled" };
    await this.reporting(ctx, async () => {
      if (this.prompts.length === 0) await this.learnPrompts(await this.connected());
      const prompt = this.prompts.find((prompt) => prompt.command === command);
      typed = prompt && { action: "transform", ...(await this.ask("switchboard/prompt", { ...prompt, line })) };
    });
    return typed;
  }

  request = (method: string, params: Json, signal: AbortSignal) =>
    this.dialogs.answer(method, params, this.ctx, signal);

  notice(method: string, params: Json): void {
    if (this.over) return;
    if (method === "notifications/switchboard/status") this.show(params);
    else if (method === "notifications/switchboard/notice") this.say(params.text, params.level);
    else if (method === "notifications/message") this.showLog(params);
    else if (method.endsWith("/tools/list_changed")) this.again(async (link) => this.tools.take(await list(link)));
    else if (method.endsWith("/prompts/list_changed")) this.again((link) => this.learnPrompts(link));
  }

  /** Reports that the program has ended. The next request starts it again. */
  lost(link: Link, why: string): void {
    if (this.link !== link || this.over) return;
    this.link = this.started = undefined;
    this.show({ servers: [] });
    this.complain(new Error(why));
  }

  /** Shows log messages of servers that are severe, or that the user's handler requested. */
  private showLog({ level, logger, data }: Json): void {
    const wanted = SEVERE.includes(level) || /\/handler-\d+$/.test(logger);
    const text = typeof data === "string" ? data : JSON.stringify(data ?? null);
    if (wanted) this.say(`${logger}: ${text.slice(0, 500)}`, "warning");
  }

  private connected(): Promise<Link> {
    this.started ??= this.start().catch(async (error) => {
      const link = this.link;
      this.link = this.started = undefined;
      await link?.close();
      throw error;
    });
    return this.started;
  }

  private async start(): Promise<Link> {
    if (this.over) throw new Error("the session has ended");
    const link = new Link(findProgram(), ["serve", "--host", "pi"], this.ctx.cwd, this);
    this.link = link;
    // Declared in every mode, because listings must not depend on it; without a UI, requests are refused.
    const capabilities = { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } };
    const who = { protocolVersion: REVISION, capabilities, clientInfo: { name: "pi", version: "0" } };
    const signal = AbortSignal.timeout(START_MS);
    const hello = link.request("initialize", who, { signal });
    link.notify("notifications/initialized");
    const [tools] = await Promise.all([list(link, signal), hello]);
    if (!this.over) this.tools.take(tools);
    this.again((link) => this.loadState(link));
    return link;
  }

  /** Requests the status and the prompts, which also subscribes to their changes. */
  private async loadState(link: Link): Promise<void> {
    this.show(await link.request("switchboard/status"));
    await this.learnPrompts(link);
  }

  private async greet(reason: string): Promise<void> {
    if (!this.ctx.hasUI || (reason !== "startup" && reason !== "reload")) return;
    const { greeting, pending } = await this.ask("switchboard/status", {});
    if (reason === "startup") this.say(greeting);
    if (pending.length > 0) await askTrust(this, this.ctx);
  }

  private async learnPrompts(link: Link): Promise<void> {
    this.prompts = (await link.request("switchboard/prompts")).prompts;
    for (const prompt of this.over ? [] : this.prompts) {
      const send = async (line: string, ctx: ExtensionContext) => {
        const { text } = await this.ask("switchboard/prompt", { ...prompt, line });
        this.pi.sendUserMessage(text, ctx.isIdle() ? undefined : { deliverAs: "followUp" });
      };
      this.pi.registerCommand(prompt.command, {
        description: [prompt.usage, prompt.description].filter(Boolean).join(" - "),
        handler: (line, ctx) => this.reporting(ctx, () => send(line, ctx)),
      });
    }
  }

  /** Runs `work` in the background, and starts the program if necessary. */
  private again(work: (link: Link) => Promise<void>): void {
    this.connected().then(work).catch(this.complain);
  }

  private readonly complain = (error: Error): void => this.say(`MCP: ${error.message}`, "error");

  /** The names of all servers, or of those with a matching status. */
  names(fits = (_status: string): boolean => true): string[] {
    return this.status.servers.filter((one: Json) => fits(one.status)).map((one: Json) => one.name);
  }

  private show(status: Json): void {
    this.status = status;
    if (!this.over && this.ctx.hasUI) this.ctx.ui.setStatus("mcp", status.footer ?? undefined);
  }
}

async function list(link: Link, signal?: AbortSignal): Promise<Json[]> {
  return (await link.request("tools/list", {}, { signal })).tools;
}
