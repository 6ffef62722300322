// The program as a child process: JSON-RPC over its standard streams, one message per line.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Socket } from "node:net";

export type Json = Record<string, any>;

/** Handles requests and notifications of the program. */
export interface LinkHandler {
  request(method: string, params: Json, signal: AbortSignal): Promise<unknown>;
  notice(method: string, params: Json): void;
  /** The program ended unexpectedly; `why` is its last output. */
  lost(link: Link, why: string): void;
}

export class RpcError extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
  }
}

export interface RequestOptions {
  signal?: AbortSignal;
  progress?: (params: Json) => void;
}

interface PendingRequest extends RequestOptions {
  resolve(result: any): void;
  reject(error: Error): void;
}

const INTERNAL_ERROR = -32603;
/** How long the program may take to exit by itself, and again after SIGTERM. */
const GRACE_MS = 3_000;
/** The number of characters of the program's standard error that are kept. */
const STDERR_CHARS = 4_000;

export class Link {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly waiting = new Map<number, PendingRequest>();
  private readonly asked = new Map<string | number, AbortController>();
  private readonly ended: Promise<void>;
  private rest = "";
  private said = "";
  private last = 0;
  private closed = false;

  constructor(program: string, args: string[], cwd: string, private readonly handler: LinkHandler) {
    this.child = spawn(program, args, { cwd, stdio: "pipe" });
    this.child.stdout.setEncoding("utf8").on("data", (text: string) => this.read(text));
    const hear = (text: string) => (this.said = (this.said + text).slice(-STDERR_CHARS));
    this.child.stderr.setEncoding("utf8").on("data", hear);
    // Writing to an exited program fails; its exit is handled below.
    this.child.stdin.on("error", () => {});
    this.ended = new Promise((resolve) => {
      this.child.on("error", (error) => this.end(error.message, resolve));
      this.child.on("exit", (code, signal) => this.end(`it ended with ${signal ?? code}`, resolve));
    });
    this.hold(false);
  }

  request(method: string, params: Json = {}, { signal, progress }: RequestOptions = {}): Promise<any> {
    if (this.closed) return Promise.reject(new Error("the program `switchboard` has ended"));
    if (signal?.aborted) return Promise.reject(aborted(signal));
    const id = ++this.last;
    const meta = progress === undefined ? {} : { _meta: { progressToken: id } };
    const answered = new Promise<any>((resolve, reject) => this.waiting.set(id, { resolve, reject, progress }));
    const abort = () => {
      this.notify("notifications/cancelled", { requestId: id, reason: "the user stopped it" });
      this.waiting.get(id)?.reject(aborted(signal!));
    };
    signal?.addEventListener("abort", abort, { once: true });
    this.hold(true);
    this.write({ id, method, params: { ...params, ...meta } });
    return answered.finally(() => {
      signal?.removeEventListener("abort", abort);
      this.waiting.delete(id);
      if (this.waiting.size === 0) this.hold(false);
    });
  }

  notify(method: string, params: Json = {}): void {
    this.write({ method, params });
  }

  /** Ends the program: closes its input, then sends signals if it does not exit. */
  async close(): Promise<void> {
    this.closed = true;
    this.child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const timer = setTimeout(() => this.child.kill(signal), GRACE_MS);
      const late = new Promise((resolve) => setTimeout(resolve, GRACE_MS + 100, "late").unref());
      if ((await Promise.race([this.ended, late])) !== "late") return clearTimeout(timer);
    }
  }

  /** The child process keeps Pi running only while a request is in flight. */
  private hold(on: boolean): void {
    const held = [this.child, ...(this.child.stdio as unknown as Socket[])];
    for (const one of held) one?.[on ? "ref" : "unref"]?.();
  }

  private write(message: Json): void {
    if (this.child.stdin.writable) this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  private read(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (this.closed || line === "") continue;
      try {
        this.take(JSON.parse(line));
      } catch (error) {
        // An unreadable message must not crash Pi; requests in flight fail when the program exits.
        this.said += `\nunreadable: ${(error as Error).message}`;
        this.child.kill();
      }
    }
  }

  private take({ id, method, params, result, error }: Json): void {
    if (method === undefined) {
      const waiting = this.waiting.get(id);
      if (error) waiting?.reject(new RpcError(error.code, error.message));
      else waiting?.resolve(result);
    } else if (id !== undefined) {
      void this.answer(id, method, params ?? {});
    } else if (method === "notifications/progress") {
      this.waiting.get(params?.progressToken)?.progress?.(params);
    } else if (method === "notifications/cancelled") {
      this.asked.get(params?.requestId)?.abort();
    } else {
      this.handler.notice(method, params ?? {});
    }
  }

  private async answer(id: string | number, method: string, params: Json): Promise<void> {
    const controller = new AbortController();
    this.asked.set(id, controller);
    try {
      this.write({ id, result: await this.handler.request(method, params, controller.signal) });
    } catch (error) {
      const code = error instanceof RpcError ? error.code : INTERNAL_ERROR;
      this.write({ id, error: { code, message: (error as Error).message } });
    } finally {
      this.asked.delete(id);
    }
  }

  private end(how: string, done: () => void): void {
    const lost = !this.closed;
    this.closed = true;
    const why = `the program \`switchboard\` has ended: ${this.said.trim() || how}`;
    for (const waiting of this.waiting.values()) waiting.reject(new Error(why));
    for (const controller of this.asked.values()) controller.abort();
    if (lost) this.handler.lost(this, why);
    done();
  }
}

function aborted({ reason }: AbortSignal): Error {
  if (reason?.name === "TimeoutError") return new Error("the program `switchboard` does not answer");
  return reason instanceof Error ? reason : new Error("aborted");
}
