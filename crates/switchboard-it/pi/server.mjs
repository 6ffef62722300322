// An MCP server with a tool for each behaviour; it logs the messages that it receives.
// Usage: node server.mjs LOG [schemas]: with `schemas` its tools are those of schemas.mjs instead. They
// return their arguments; a call of `boolean` changes the descriptions.

import { appendFileSync, existsSync, writeFileSync } from "node:fs";

import { SCHEMAS } from "./schemas.mjs";

const [place, kind] = process.argv.slice(2);

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const worded = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const text = (value) => ({ content: [{ type: "text", text: worded(value) }] });

const asked = new Map();

// Sends a request to the client; returns its result, or its refusal.
function ask(method, params) {
  const id = `ask-${asked.size + 1}`;
  send({ id, method, params });
  return new Promise((resolve) => asked.set(id, ({ result, error }) => resolve(result ?? { refused: error.message })));
}

const FORM = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", description: "What to call you" },
    age: { type: "integer", title: "Age", minimum: 0 },
    size: { type: "string", title: "Size", enum: ["small", "large"] },
    news: { type: "boolean", title: "News" },
  },
  required: ["name"],
};

// Malformed log messages.
const SHOUTS = [
  { level: "error" },
  { level: "error", logger: "\u001b]0;title\u0007", data: "\u001b[2J\u202ehidden" },
  { level: "alert", logger: 7, data: { deep: [null] } },
];

const waiting = [];

const TOOLS = {
  wait: { call: () => new Promise(() => {}) },
  meet: {
    // The first call is answered only when the second arrives.
    call: ({ who }) => new Promise((resolve) => {
      waiting.push(() => resolve(text(`${who} met another`)));
      if (waiting.length > 1) for (const answer of waiting.splice(0)) answer();
    }),
    inputSchema: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
  },
  count: {
    call: (_, progressToken) => {
      for (const progress of [1, 2, 3]) {
        const params = { progressToken, progress, total: 3, message: `step ${progress}` };
        send({ method: "notifications/progress", params });
      }
      return text("counted");
    },
  },
  fail: { call: () => ({ ...text("the disk is full"), isError: true }) },
  fail_silently: { call: () => ({ content: [], isError: true }) },
  shout: {
    call: () => {
      for (const params of SHOUTS) send({ method: "notifications/message", params });
      return text("shouted");
    },
  },
  sound: { call: () => ({ content: [{ type: "audio", data: "UklGRg==", mimeType: "audio/wav" }] }) },
  crash: { call: () => process.exit(1) },
  erase: {
    call: ({ what }) => text(`erased ${what}`),
    inputSchema: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
    annotations: { destructiveHint: true },
  },
  ask_form: {
    call: async () => text(await ask("elicitation/create", { message: "Who are you?", requestedSchema: FORM })),
  },
  ask_url: {
    call: async () => text(await ask("elicitation/create", {
      mode: "url",
      message: "Sign in over there",
      url: "https://example.com/sign-in",
      elicitationId: "sign-in-1",
    })),
  },
  sample: {
    call: async () => text(await ask("sampling/createMessage", {
      messages: [{ role: "user", content: { type: "text", text: "a question of a server" } }],
      systemPrompt: "Answer shortly",
      maxTokens: 50,
    })),
  },
  roots: { call: async () => text(await ask("roots/list")) },
};

const EMPTY = { type: "object", properties: {} };
const CHANGED = `${place}.changed`;
const about = (name) => (existsSync(CHANGED) ? `Takes another ${name}` : `Takes ${name}`);
const list = () => (kind === "schemas"
  ? SCHEMAS.map(({ name, given }) => ({ name, description: about(name), inputSchema: given }))
  : Object.entries(TOOLS).map(([name, { inputSchema = EMPTY, annotations = { readOnlyHint: true } }]) =>
    ({ name, description: `The tool ${name}`, inputSchema, annotations })));

function giveBack(name, args) {
  if (name === "boolean") {
    writeFileSync(CHANGED, "");
    send({ method: "notifications/tools/list_changed" });
  }
  return text(args);
}

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: "ours", version: "1" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: list() }),
  "tools/call": ({ name, arguments: args, _meta }) => {
    if (kind === "schemas") return giveBack(name, args);
    return TOOLS[name].call(args ?? {}, _meta?.progressToken);
  },
};

async function take(message) {
  appendFileSync(place, `${JSON.stringify(message)}\n`);
  const { id, method, params } = message;
  if (method === undefined) return asked.get(id)(message);
  if (id === undefined) return;
  const answer = METHODS[method];
  if (answer) send({ id, result: await answer(params ?? {}) });
  else send({ id, error: { code: -32601, message: `no method ${method}` } });
}

let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) take(JSON.parse(line));
});
process.stdin.on("end", () => process.exit(0));
