// Servers of a project: the user can approve them only in a dialog of Pi.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { inHome, ours, told, writeJson } from "./home.mjs";
import { mcp, script, toldByTools } from "./model.mjs";
import { LATEST, VERSIONS, json, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";

const COUNT = script(mcp({ tool: "theirs_count" }));

// A home without servers, in a project that brings one.
const inProject = (use) =>
  inHome({}, (world) => {
    writeJson(join(world.project, ".mcp.json"), { mcpServers: { theirs: ours(world) } });
    return use(world);
  });

const isTrustDialog = ({ title, options }) =>
  /^Trust the server theirs of this project\?\n/.test(title) && options[0] === "No" && options[1] === "Trust it";
const trusts = (dialog) => (isTrustDialog(dialog) ? "Trust it" : undefined);

for (const version of Object.keys(VERSIONS)) {
  test(`a project's server runs after its exact definition is approved (${version})`, () =>
    inProject(async (world) => {
      await rpc(version, world, { answers: trusts }, async (pi) => {
        const dialog = await pi.until("the dialog", ({ method }) => method === "select");
        assert.ok(isTrustDialog(dialog), dialog.title);
        const { command, args } = ours(world);
        for (const word of [command, ...args]) assert.ok(dialog.title.includes(word), dialog.title);
        await pi.until("the answer", ({ method, message }) => method === "notify" && /theirs/.test(message));
        await pi.prompt(COUNT);
        assert.equal(toldByTools(world.model.requests).at(-1), "counted");
      });
      // The approval lasts, and another definition needs a new one.
      await print(version, world, COUNT);
      assert.equal(toldByTools(world.model.requests).at(-1), "counted");
      writeJson(join(world.project, ".mcp.json"), { mcpServers: { theirs: ours(world, "other") } });
      await print(version, world, COUNT);
      assert.match(toldByTools(world.model.requests).at(-1), /error: .*(trust|approv)/);
    }));

  test(`a declined dialog or a project untrusted in Pi leaves its server off (${version})`, () =>
    inProject(async (world) => {
      await rpc(version, world, { answers: () => "No" }, async (pi) => {
        await pi.until("the notice", ({ method, message }) => method === "notify" && /theirs stays off/.test(message));
        await pi.prompt(COUNT);
        assert.match(toldByTools(world.model.requests).at(-1), /error: .*(trust|approv)/);
      });
      await rpc(version, world, { options: ["--no-approve"] }, async (pi) => {
        await pi.until("the notice", ({ method, message }) =>
          method === "notify" && /theirs.*you do not trust the project in Pi/.test(message));
        assert.deepEqual(pi.dialogs, []);
      });
      assert.deepEqual(told(world), []);
    }));
}

test("print and json mode show no trust dialog, and a project's server stays off", () =>
  inProject(async (world) => {
    for (const run of [print, json]) {
      const { code } = await run(LATEST, world, COUNT);
      assert.equal(code, 0);
      assert.match(toldByTools(world.model.requests).at(-1), /error: .*(trust|approv)/);
    }
    assert.deepEqual(told(world), []);
  }));
