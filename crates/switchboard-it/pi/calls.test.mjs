// Results of tool calls: the text for the model, and the details for Pi.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventually, everything, inHome, ours, told } from "./home.mjs";
import { mcp, script, textOf, toldByTools } from "./model.mjs";
import { LATEST, VERSIONS, json, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";

const servers = (world) => ({ everything: everything(), ours: ours(world) });

// A tool of our server, its arguments, the beginning of the error text, and the error type for Pi.
const FAILURES = [
  ["fail", {}, /^MCP tool error: the disk is full$/, "MCPToolError"],
  ["fail_silently", {}, /^MCP tool error: Unknown error$/, "MCPToolError"],
  ["meet", { who: {} }, /^MCP tool error: .*who/, "ValidationError"],
  ["nonesuch", {}, /^MCP tool error: .*nonesuch/, "ValidationError"],
  ["crash", {}, /^MCP connection error: /, "MCPConnectionError"],
];

for (const version of Object.keys(VERSIONS)) {
  test(`an error has isError, an error prefix and details (${version})`, () =>
    inHome({ servers }, async (world) => {
      const turns = FAILURES.map(([tool, args]) => mcp({ tool: `ours_${tool}`, args }));
      const { ends, stderr } = await json(version, world, script(...turns));
      assert.equal(ends.length, FAILURES.length, stderr);
      const texts = toldByTools(world.model.requests);
      for (const [index, [tool, , says, errorType]] of FAILURES.entries()) {
        const { isError, result } = ends[index];
        assert.match(texts[index], says);
        assert.equal(textOf(result.content), texts[index]);
        assert.deepEqual([tool, isError, result.details.errorType], [tool, true, errorType]);
      }
      assert.deepEqual(ends[0].result.details.originalError, [{ type: "text", text: "the disk is full" }]);
    }));

  test(`a result has its text, its image and its details (${version})`, () =>
    inHome({ servers }, async (world) => {
      const calls = [
        mcp({ tool: "everything_get-tiny-image" }),
        mcp({ tool: "everything_get-structured-content", args: { location: "New York" } }),
      ];
      const { ends } = await json(version, world, script(...calls));
      const [image, structured] = ends.map(({ result }) => result);
      assert.deepEqual(ends.map(({ isError }) => isError), [false, false]);
      assert.ok(image.content.some(({ type, mimeType }) => type === "image" && mimeType === "image/png"));
      assert.equal(image.details.imageCount, 1);
      assert.deepEqual([structured.details.server, structured.details.tool], ["everything", "get-structured-content"]);
      assert.deepEqual(Object.keys(structured.details.data).sort(), ["conditions", "humidity", "temperature"]);
      // The API has no images in tool results, so Pi sends them in a message of their own.
      const { messages } = world.model.requests.at(-1);
      const shown = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
      assert.ok(shown.some(({ type, image_url }) => type === "image_url" && image_url.url.startsWith("data:image/")));
    }));

  test(`two calls of one turn run in parallel, and progress is shown (${version})`, () =>
    inHome({ servers }, async (world) => {
      const both = ["Ada", "Grace"].map((who) => ["mcp", { tool: "ours_meet", args: { who } }]);
      const { updates } = await json(version, world, script(both, mcp({ tool: "ours_count" })));
      assert.deepEqual(toldByTools(world.model.requests), ["Ada met another", "Grace met another", "counted"]);
      const steps = updates.map(({ partialResult }) => textOf(partialResult.content));
      assert.deepEqual(steps, ["step 1 (1/3)", "step 2 (2/3)", "step 3 (3/3)"]);
    }));

  test(`aborting in Pi cancels the call at the server (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, {}, async (pi) => {
        await pi.command("prompt", { message: script(mcp({ tool: "ours_wait" })) });
        const called = () => told(world).find(({ method }) => method === "tools/call");
        await eventually("the server is called", called, () => told(world));
        await pi.command("abort");
        await pi.until("the end of the run", ({ type }) => type === "agent_settled");
        const { id } = called();
        const cancelled = ({ method, params }) => method === "notifications/cancelled" && params.requestId === id;
        await eventually("the server receives the cancellation", () => told(world).some(cancelled), () => told(world));
        // Later calls are not affected.
        await pi.prompt(script(mcp({ tool: "ours_count" })));
        assert.equal(toldByTools(world.model.requests).at(-1), "counted");
      })));
}

test("without the switchboard program Pi works and reports the missing path", () =>
  inHome({ servers, binary: "/nowhere/switchboard" }, async (world) => {
    const missing = /Switchboard cannot start: SWITCHBOARD_BIN is `\/nowhere\/switchboard`/;
    const { code, stdout, stderr } = await print(LATEST, world, script("hello"));
    assert.deepEqual([code, stdout], [0, "hello\n"]);
    assert.match(stderr, missing);
    await rpc(LATEST, world, {}, async (pi) => {
      const shown = ({ type, method, notifyType, message }) =>
        type === "extension_ui_request" && method === "notify" && notifyType === "error" && missing.test(message);
      await pi.until("the message", shown);
      assert.match(await pi.slash("/mcp status"), missing);
    });
  }));
