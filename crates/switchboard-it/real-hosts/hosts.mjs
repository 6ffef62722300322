// Third-party hosts. Each opens a session with a target, `{ command, args, env, cwd }` or
// `{ url, headers }`, and sends requests by method; `asked` has the questions to its user.

import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import * as v2 from "@modelcontextprotocol/client";
import { StdioClientTransport as V2Stdio } from "@modelcontextprotocol/client/stdio";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as V1Stdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as V1Http } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { beside, installed } from "./world.mjs";

const run = promisify(execFile);

const METHODS = {
  "tools/list": "listTools",
  "tools/call": "callTool",
  "prompts/list": "listPrompts",
  "prompts/get": "getPrompt",
  "resources/list": "listResources",
  "resources/read": "readResource",
};

// The TypeScript SDK, in either of its major versions.
async function typescript({ Client, Stdio, Http, elicit, listRoots, options }, target) {
  const capabilities = { elicitation: {}, ...(listRoots && { roots: {} }) };
  const client = new Client({ name: "real-hosts", version: "1" }, { capabilities, ...options });
  const asked = [];
  // Its user accepts every request once, and gives a name if the form has one.
  client.setRequestHandler(elicit, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { decision: "once", name: "Ada" } };
  });
  if (listRoots) {
    const roots = [{ uri: `file://${target.cwd}`, name: "home" }];
    client.setRequestHandler(listRoots, () => ({ roots }));
  }
  const { url, headers } = target;
  const transport = url ? new Http(new URL(url), { requestInit: { headers } }) : new Stdio(target);
  await client.connect(transport);
  return {
    asked,
    pid: transport.pid,
    request: (method, params) => client[METHODS[method]](params),
    close: () => client.close(),
  };
}

// The command line of the Inspector: one session for each request, without elicitation.
async function inspector(target) {
  const pairs = (object) => Object.entries(object).map(([name, value]) =>
    `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const options = {
    "tools/call": ({ name, arguments: args }) => ["--tool-name", name, "--tool-arg", ...pairs(args)],
    "prompts/get": ({ name, arguments: args }) => ["--prompt-name", name, "--prompt-args", ...pairs(args)],
    "resources/read": ({ uri }) => ["--uri", uri],
  };
  const overHttp = ({ url, headers }) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return [url, "--transport", "http", "--header", ...lines];
  };
  const where = target.url ? overHttp(target) : [target.command, ...target.args];
  const cli = installed("@modelcontextprotocol/inspector/cli/build/cli.js");
  const request = async (method, params) => {
    const words = [cli, "--cli", ...where, "--method", method, ...(options[method]?.(params) ?? [])];
    const { stdout } = await run(process.execPath, words, { env: target.env, cwd: target.cwd });
    return JSON.parse(stdout);
  };
  return { request, close: () => {} };
}

// The Python SDK, in the version that the interpreter `python` has.
async function python(python, target) {
  const words = [beside("host.py"), JSON.stringify(target)];
  const child = spawn(python, words, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const asked = [];
  const request = async (method, params = {}) => {
    child.stdin.write(`${JSON.stringify({ method, params })}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error("the Python host ended its session");
    const answer = JSON.parse(value);
    asked.splice(0, asked.length, ...answer.asked);
    return answer.result;
  };
  const close = async () => {
    child.stdin.end();
    await ended;
  };
  return { asked, request, close };
}

const V1 = { Client: V1Client, Stdio: V1Stdio, Http: V1Http, elicit: ElicitRequestSchema };
const V2 = {
  Client: v2.Client,
  Stdio: V2Stdio,
  Http: v2.StreamableHTTPClientTransport,
  elicit: "elicitation/create",
};
// Sends `server/discover` first and falls back to `initialize`, as the Python SDK 2 does.
const V2_PROBING = { ...V2, options: { versionNegotiation: { mode: "auto" } } };

// A host with more capabilities than the others.
export const withRoots = (target) => typescript({ ...V1, listRoots: ListRootsRequestSchema }, target);

export const hosts = ({ python1, python2 }) => ({
  "TypeScript SDK 1": (target) => typescript(V1, target),
  "TypeScript SDK 2": (target) => typescript(V2, target),
  "TypeScript SDK 2, probing": (target) => typescript(V2_PROBING, target),
  "Python SDK 1": (target) => python(python1, target),
  "Python SDK 2": (target) => python(python2, target),
  Inspector: inspector,
});
