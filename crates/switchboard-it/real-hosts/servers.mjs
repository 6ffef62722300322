// Third-party servers, with the results that each must give through Switchboard: a call, and a
// resource and a prompt if it has them.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { beside, freePort, installed, whileRunning } from "./world.mjs";

const official = (name) => installed(`@modelcontextprotocol/${name}/dist/index.js`);
const node = (script, ...args) => ({ command: process.execPath, args: [script, ...args] });

export const everything = () => node(official("server-everything"));
export const filesystem = ({ files }) => node(official("server-filesystem"), files);

const SHOWN_BY_EVERYTHING = {
  call: { tool: "echo", args: { message: "hi" }, says: /^Echo: hi$/ },
  resource: {
    uri: "demo://resource/static/document/features.md",
    tool: "read_features_md",
    says: /^# Everything Server/,
  },
  prompt: { name: "args-prompt", args: { city: "Oslo" }, says: /^What's weather in Oslo\?$/ },
};

const SHOWN_BY_PYTHON = {
  call: { tool: "add", args: { a: 2, b: 40 }, says: /^42$/ },
  resource: { uri: "note://greeting", tool: "read_greeting", says: /^hello from a note$/ },
  prompt: { name: "review", args: { language: "Rust" }, says: /^Review this Rust code\.$/ },
};

// Server-everything over HTTP, while `use` runs.
const everythingAt = (way, type, path) => async (use) => {
  const port = await freePort();
  const words = [process.execPath, official("server-everything"), way];
  const url = `http://127.0.0.1:${port}${path}`;
  const options = { env: { PATH: process.env.PATH, PORT: String(port) } };
  return whileRunning(words, options, /\bport \d+/, () => use(() => ({ type, url })));
};

// Context7 fetches documentation from an HTTP service; here it is a local fake.
const context7 = async (use) => {
  const service = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://127.0.0.1");
    response.end(`${pathname} of ${searchParams.get("libraryId")}`);
  });
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  const env = { CONTEXT7_API_URL: `http://127.0.0.1:${service.address().port}/api` };
  try {
    return await use(() => ({ ...node(installed("@upstash/context7-mcp/dist/index.js")), env }));
  } finally {
    service.closeAllConnections();
    service.close();
  }
};

// Fetch gets a page from a local HTTP server.
const fetching = (python) => {
  const call = { tool: "fetch", args: { url: "" }, says: /hello from a page/ };
  const start = async (use) => {
    const service = createServer(({ url }, response) => {
      response.statusCode = url === "/page" ? 200 : 404;
      response.setHeader("content-type", "text/plain");
      response.end("hello from a page");
    });
    await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
    call.args.url = `http://127.0.0.1:${service.address().port}/page`;
    try {
      return await use(() => ({ command: python, args: ["-m", "mcp_server_fetch", "--allow-private-ips"] }));
    } finally {
      service.closeAllConnections();
      service.close();
    }
  };
  return { start, call, prompt: { name: "fetch", args: call.args, says: call.says } };
};

const fixed = (entry) => (use) => use(entry);

// A server without `resource` or `prompt` must list none. `start` calls its argument with the
// server's entry in a configuration, as a function of the world.
export const servers = ({ python1, python2 }) => {
  const byPython = (python, module, name) => fixed(() => ({
    command: python,
    args: [beside("server.py"), module, name],
    env: { FASTMCP_CHECK_FOR_UPDATES: "off", FASTMCP_SHOW_SERVER_BANNER: "false" },
  }));
  return {
    "everything, stdio": { start: fixed(everything), ...SHOWN_BY_EVERYTHING },
    "everything, HTTP": { start: everythingAt("streamableHttp", "http", "/mcp"), ...SHOWN_BY_EVERYTHING },
    "everything, SSE": { start: everythingAt("sse", "sse", "/sse"), ...SHOWN_BY_EVERYTHING },
    filesystem: {
      start: fixed(filesystem),
      call: { tool: "read_text_file", args: { path: "hello.txt" }, says: /^hello from a file\n$/ },
    },
    memory: {
      start: fixed(({ home }) => {
        const env = { MEMORY_FILE_PATH: join(home, "memory") };
        return { ...node(official("server-memory")), env };
      }),
      call: {
        tool: "create_entities",
        args: { entities: [{ name: "Ada", entityType: "person", observations: [] }] },
        says: /"name": ?"Ada"/,
      },
      resource: { uri: "memory://knowledge-graph", tool: "read_knowledge_graph", says: /"name": ?"Ada"/ },
    },
    context7: {
      start: context7,
      call: {
        tool: "query-docs",
        args: { libraryId: "/a/b", query: "c" },
        says: /^\/api\/v2\/context of \/a\/b$/,
      },
    },
    time: {
      start: fixed(() => ({ command: python2, args: ["-m", "mcp_server_time", "--local-timezone", "UTC"] })),
      call: {
        tool: "convert_time",
        args: { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" },
        says: /T21:00:00\+09:00/,
      },
    },
    git: {
      start: fixed(({ home }) => {
        mkdirSync(join(home, "repo"), { recursive: true });
        execFileSync("git", ["init", "--quiet", join(home, "repo")]);
        return { command: python2, args: ["-m", "mcp_server_git"] };
      }),
      call: { tool: "git_status", args: { repo_path: "repo" }, says: /No commits yet/ },
    },
    fetch: fetching(python2),
    FastMCP: { start: byPython(python2, "fastmcp", "FastMCP"), ...SHOWN_BY_PYTHON },
    "Python SDK 2": { start: byPython(python2, "mcp.server.mcpserver", "MCPServer"), ...SHOWN_BY_PYTHON },
    "Python SDK 1": { start: byPython(python1, "mcp.server.fastmcp", "FastMCP"), ...SHOWN_BY_PYTHON },
  };
};
