// One loop of the model in every mode of every version, installed with `pi install`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { EXTENSION, everything, files, inHome } from "./home.mjs";
import { mcp, script, toldByTools } from "./model.mjs";
import { VERSIONS, administer, json, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";
import { onTerminal } from "./terminal.mjs";

const BOTH = script(
  mcp({ tool: "everything_get-sum", args: { a: 2, b: 40 } }),
  mcp({ tool: "files_read_text_file", args: { path: "hello.txt" } }),
);

// Pi's warning if its built-in MCP is still on, which `switchboard install pi` turns off.
const REPLACED = /^.*registers command `\/mcp`, so built-in extension `mcp` was not loaded.*\n$/;

function check({ model }) {
  assert.deepEqual(toldByTools(model.requests), ["The sum of 2 and 40 is 42.", "hello from a file\n"]);
  model.requests.length = 0;
}

// A home with nothing but the extension, added by `pi install`.
const inInstalled = (version, use) =>
  inHome({ servers: (world) => ({ everything: everything(), files: files(world) }), pi: {} }, async (world) => {
    const { code, stderr } = await administer(version, world, "install", EXTENSION);
    assert.equal(code, 0, stderr);
    const { packages } = JSON.parse(readFileSync(join(world.agent, "settings.json"), "utf8"));
    assert.equal(packages.length, 1);
    await use(world);
  });

for (const version of Object.keys(VERSIONS)) {
  test(`after installation print, json, rpc and terminal modes reach two servers (${version})`, () =>
    inInstalled(version, async (world) => {
      const printed = await print(version, world, BOTH);
      assert.deepEqual([printed.code, printed.stdout], [0, "done: hello from a file\n\n"], printed.stderr);
      assert.match(printed.stderr, version === "0.87.1" ? /^$/ : REPLACED);
      check(world);

      const { code, ends } = await json(version, world, BOTH);
      assert.deepEqual([code, ends.map(({ isError }) => isError)], [0, [false, false]]);
      check(world);

      const ended = await rpc(version, world, {}, async (pi) => {
        const { ends } = await pi.prompt(BOTH);
        assert.deepEqual(ends.map(({ isError }) => isError), [false, false]);
      });
      assert.equal(ended.code, 0);
      check(world);

      const left = await onTerminal(version, world, async ({ enter, sees }) => {
        await sees(/MCP: 2 servers/);
        await enter(BOTH);
        await sees(/done: hello from a file/);
        await enter("/quit");
      });
      assert.equal(left, 0);
      check(world);
    }));
}
