// What the user sees on a terminal.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { everything, files, inHome } from "./home.mjs";
import { mcp, script } from "./model.mjs";
import { VERSIONS } from "./pi.mjs";
import { onTerminal } from "./terminal.mjs";

const EXPAND = "\x0f"; // ctrl+o

for (const version of Object.keys(VERSIONS)) {
  test(`/mcp status shows the servers, and a call is one line until expanded (${version})`, () =>
    inHome({ servers: (world) => ({ everything: everything(), files: files(world) }) }, async (world) => {
      writeFileSync(join(world.project, "lines.txt"), "first line\nsecond line\nthird line");
      const left = await onTerminal(version, world, async ({ enter, sees, type, screen }) => {
        await sees(/MCP: 2 servers/);
        await enter("/mcp status");
        await sees(/MCP: \d\/2 servers, [^]*everything[^]*files/);
        await enter(script(mcp({ tool: "files_read_text_file", args: { path: "lines.txt" } }), "finished"));
        await sees(/ finished/);
        assert.match(screen(), /mcp files_read_text_file \{"path":"lines\.txt"\}/);
        assert.match(screen(), /first line … 2 more.*\(ctrl\+o\)/);
        assert.doesNotMatch(screen(), /third line/);
        type(EXPAND);
        await sees(/third line/);
        await enter("/quit");
      });
      assert.equal(left, 0);
    }));
}
