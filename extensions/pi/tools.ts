// Registers the tools that the program lists as tools of Pi.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

import { tried } from "./binary.ts";
import type { Board } from "./board.ts";
import type { Json } from "./link.ts";
import { renderCall, renderResult } from "./render.ts";

export class Tools {
  /** The registered tools as JSON, by name. */
  private readonly known = new Map<string, string>();
  /** Ids of calls with an error result: Pi before 0.99 takes `isError` only from an event. */
  private readonly failed = new Set<string>();

  constructor(private readonly pi: ExtensionAPI, private readonly board: Board) {}

  /** Registers new tools. Registered ones stay unchanged for the prompt cache, unless `renew` is set. */
  take(list: Json[], renew = false): void {
    for (const tool of list) {
      const known = this.known.get(tool.name);
      if (known === undefined || (renew && known !== JSON.stringify(tool))) this.register(tool);
    }
    const gone = [...this.known.keys()].filter((name) => !list.some((tool) => tool.name === name));
    if (!renew || gone.length === 0) return;
    for (const name of gone) this.known.delete(name);
    this.pi.setActiveTools(this.pi.getActiveTools().filter((name) => !gone.includes(name)));
  }

  flagOf(toolCallId: string): { isError: true } | undefined {
    return this.failed.delete(toolCallId) ? { isError: true } : undefined;
  }

  private register(tool: Json): void {
    // A tool of Pi or another extension keeps its name; ours is still reached through `mcp`.
    const taken = !this.known.has(tool.name) && this.pi.getAllTools().some(({ name }) => name === tool.name);
    if (taken) return;
    this.known.set(tool.name, JSON.stringify(tool));
    this.pi.registerTool({
      name: tool.name,
      label: tool.title ?? tool.name,
      description: tool.description ?? "",
      parameters: tool.inputSchema,
      prepareArguments: (args: unknown) => unquoted(args, tool.inputSchema) as any,
      execute: (id, args, signal, onUpdate, ctx) => this.call(tool.name, id, args, signal, onUpdate, ctx),
      renderCall: (args, theme, context) => renderCall(tool, args as Json, theme, context),
      renderResult: (result, options, theme) => renderResult(result, options, theme, this.board.status),
    });
  }

  private async call(name: string, id: string, args: any, signal: any, onUpdate: any, ctx: ExtensionContext) {
    this.board.ctx = ctx;
    const progress = (step: Json) => onUpdate?.({ content: [{ type: "text", text: lineOf(step) }], details: { step } });
    const called = this.board.ask("tools/call", { name, arguments: args }, { signal, progress });
    const result = await called.catch((error: Error) => {
      throw signal?.aborted ? error : new Error(`MCP connection error: ${error.message || "Unknown error"}`);
    });
    const isError = result.isError === true;
    if (isError) this.failed.add(id);
    return { content: result.content.map(blockOf), details: result._meta?.["switchboard/details"] ?? {}, isError };
  }
}

/** Parses objects and arrays that a model wrote as JSON strings, which Pi would refuse. */
function unquoted(args: any, schema: Json): unknown {
  const quoted = ([name, value]: [string, unknown]) =>
    typeof value === "string" && ["object", "array"].includes(schema.properties?.[name]?.type);
  const read = (value: any) => tried(() => JSON.parse(value)) ?? value;
  if (typeof args !== "object" || args === null) return args;
  return Object.fromEntries(Object.entries(args).map((one) => (quoted(one) ? [one[0], read(one[1])] : one)));
}

function blockOf({ type, text, data, mimeType = "image/png", ...rest }: Json): any {
  if (type === "text") return { type, text };
  return type === "image" ? { type, data, mimeType } : { type: "text", text: JSON.stringify({ type, ...rest }) };
}

function lineOf({ progress, total, message }: Json): string {
  const count = total === undefined ? `${progress}` : `${progress}/${total}`;
  return message ? `${message} (${count})` : count;
}
