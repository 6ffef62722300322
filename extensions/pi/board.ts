// One session of Pi: the program behind it, what it lists, and what it tells the user.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

import { findProgram } from "./binary.ts";
import { Dialogs } from "./dialogs.ts";
import { type Ear, type Json, Link, type Patience } from "./link.ts";
import { Tools } from "./tools.ts";
import { askTrust } from "./trust.ts";

const REVISION = "2025-11-25";

/** How long a request to the model may wait for the list of tools, which needs no server. */
const LISTING_MS = 5_000;

export type Level = "info" | "warning" | "error";

/** What becomes of a line that the user typed. */
export type Typed = { action: "transform"; text: string } | { action: "handled" } | undefined;

export class Board implements Ear {
  readonly tools: Tools;
  /** As the program told it last. */
  status: Json = { servers: [], settings: {} };
  private ctx!: ExtensionContext;
  private link: Promise<Link> | undefined;
  private prompts: Json[] = [];
  private readonly dialogs = new Dialogs();
  private over = false;

  constructor(private readonly pi: ExtensionAPI) {
    this.tools = new Tools(pi, this);
  }

  /** Nothing waits for it. Pi may say twice that a session started. */
  begin(ctx: ExtensionContext, reason: string): void {
    this.attend(ctx);
    if (this.link === undefined) this.again((link) => this.lookAround(link, reason));
  }

  /** Whoever is asked something from now on is asked here. */
  attend(ctx: ExtensionContext): void {
    this.ctx = ctx;
  }

  /** Only the list of tools is waited for, not a server; and not for long. */
  async beforeRequest(ctx: ExtensionContext): Promise<void> {
    this.attend(ctx);
    const late = new Promise<void>((resolve) => setTimeout(resolve, LISTING_MS).unref());
    await Promise.race([this.connected().then(() => {}, () => {}), late]);
  }

  async end(): Promise<void> {
    this.over = true;
    const link = await this.link?.catch(() => undefined);
    await link?.close();
  }

  /** What the program answers; it is started first if it does not run. */
  async ask(method: string, params: Json, patience?: Patience): Promise<any> {
    return (await this.connected()).request(method, params, patience);
  }

  /** To the user: on the screen, or in print mode where a shell shows it. */
  say(text: string, level: Level = "info", ctx: ExtensionContext = this.ctx): void {
    if (this.over || text === "") return;
    if (ctx.hasUI) ctx.ui.notify(text, level);
    else (level === "info" && ctx.mode === "print" ? process.stdout : process.stderr).write(`${text}\n`);
  }

  /** Does the work of a command; what goes wrong is said. */
  async reporting(ctx: ExtensionContext, work: () => Promise<void>): Promise<void> {
    this.attend(ctx);
    await work().catch((error) => this.say(error.message, "error", ctx));
  }

  /** A prompt that was typed before Pi knew it as a command, as in `pi -p`. */
  async promptTyped(text: string, ctx: ExtensionContext): Promise<Typed> {
    const [, command, line] = /^\/(mcp__\S+)\s*([^]*)$/.exec(text) ?? [];
    if (command === undefined) return undefined;
    let typed: Typed = { action: "handled" };
    await this.reporting(ctx, async () => {
      if (this.prompts.length === 0) await this.learnPrompts(await this.connected());
      const prompt = this.prompts.find((prompt) => prompt.command === command);
      typed = prompt && { action: "transform", text: await this.filledIn(prompt, line) };
    });
    return typed;
  }

  async request(method: string, params: Json, signal: AbortSignal): Promise<unknown> {
    return this.dialogs.answer(method, params, this.ctx, signal);
  }

  notice(method: string, params: Json): void {
    if (this.over) return;
    if (method === "notifications/switchboard/status") this.show(params);
    else if (method === "notifications/message") this.say(params.data, params.level === "info" ? "info" : "warning");
    else if (method.endsWith("/tools/list_changed")) this.again(async (link) => this.tools.take(await list(link)));
    else if (method.endsWith("/prompts/list_changed")) this.again((link) => this.learnPrompts(link));
  }

  /** The next request starts it anew. */
  lost(why: string): void {
    this.link = undefined;
    this.complain(new Error(why));
  }

  private connected(): Promise<Link> {
    this.link ??= this.start().catch((error) => {
      this.link = undefined;
      throw error;
    });
    return this.link;
  }

  private async start(): Promise<Link> {
    if (this.over) throw new Error("the session has ended");
    const link = new Link(findProgram(), ["serve", "--host", "pi"], this.ctx.cwd, this);
    const asked = this.ctx.hasUI ? { sampling: {}, elicitation: { form: {}, url: {} } } : {};
    const hello = link.request("initialize", {
      protocolVersion: REVISION,
      capabilities: { roots: {}, ...asked },
      clientInfo: { name: "pi", version: REVISION },
    });
    link.notify("notifications/initialized");
    const [tools] = await Promise.all([list(link), hello]);
    if (!this.over) this.tools.take(tools);
    return link;
  }

  /** After the start. */
  private async lookAround(link: Link, reason: string): Promise<void> {
    const status = await link.request("switchboard/status");
    this.show(status);
    await this.learnPrompts(link);
    if (this.over || !this.ctx.hasUI) return;
    if (reason === "startup") this.say(status.greeting ?? "");
    const may = reason === "startup" || reason === "reload";
    if (may && status.pending.length > 0) await askTrust(this, this.ctx);
  }

  private async learnPrompts(link: Link): Promise<void> {
    const { prompts } = await link.request("switchboard/prompts");
    if (this.over) return;
    this.prompts = prompts;
    for (const prompt of prompts) {
      const send = async (line: string, ctx: ExtensionContext) => {
        const text = await this.filledIn(prompt, line);
        this.pi.sendUserMessage(text, ctx.isIdle() ? undefined : { deliverAs: "followUp" });
      };
      this.pi.registerCommand(prompt.command, {
        description: [prompt.usage, prompt.description].filter(Boolean).join(" - "),
        handler: (line, ctx) => this.reporting(ctx, () => send(line, ctx)),
      });
    }
  }

  private async filledIn({ server, prompt }: Json, line: string): Promise<string> {
    return (await this.ask("switchboard/prompt", { server, prompt, line })).text;
  }

  /** Nobody waits for it. */
  private again(work: (link: Link) => Promise<void>): void {
    this.connected().then(work).catch(this.complain);
  }

  private readonly complain = (error: Error): void => this.say(`MCP: ${error.message}`, "error");

  private show(status: Json): void {
    this.status = status;
    if (!this.over && this.ctx.hasUI) this.ctx.ui.setStatus("mcp", status.footer ?? undefined);
  }
}

async function list(link: Link): Promise<Json[]> {
  return (await link.request("tools/list")).tools;
}
