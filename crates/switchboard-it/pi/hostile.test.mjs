// Hostile server output and a silent program neither end Pi nor deceive its user.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { EXTENSION, eventually, gatewaysOf, inHome, ours } from "./home.mjs";
import { mcp, script, toldByTools } from "./model.mjs";
import { LATEST, VERSIONS, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";

const servers = (world) => ({ ours: ours(world) });

for (const version of Object.keys(VERSIONS)) {
  test(`malformed log messages are shown safely or ignored (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, {}, async (pi) => {
        await pi.prompt(script(mcp({ tool: "ours_shout" }), mcp({ tool: "ours_count" })));
        assert.deepEqual(toldByTools(world.model.requests), ["shouted", "counted"]);
        const { message } = await pi.until("the notice", ({ method, message }) => method === "notify" && /hidden/.test(message));
        assert.equal(message, "ours/: hidden");
      })));
}

test("a killed gateway is restarted, and the footer shows the new one", () =>
  inHome({ servers }, (world) =>
    rpc(LATEST, world, {}, async (pi) => {
      const connected = () => eventually("it is connected", () => /\(1 connected\)/.test(pi.footer() ?? ""), () => pi.footer());
      await pi.prompt(script(mcp({ tool: "ours_count" })));
      await connected();
      process.kill(gatewaysOf(world)[0].pid, "SIGKILL");
      await eventually("the footer is empty", () => !pi.footer(), () => pi.footer());
      await pi.prompt(script(mcp({ tool: "ours_shout" })));
      assert.equal(toldByTools(world.model.requests).at(-1), "shouted");
      await connected();
    })));

test("audio becomes a file and a note, because Pi takes none", () =>
  inHome({ servers }, async (world) => {
    await print(LATEST, world, script(mcp({ tool: "ours_sound" })));
    assert.match(toldByTools(world.model.requests).at(-1), /^\[Audio content: audio\/wav\]\nSaved to \S+\.wav$/);
  }));

test("a silent program does not stop Pi from answering and ending", () =>
  inHome({ servers, binary: "/bin/cat" }, async (world) => {
    const silent = join(world.home, "silent");
    writeFileSync(silent, "#!/bin/sh\nexec sleep 100\n", { mode: 0o755 });
    world.env.SWITCHBOARD_BIN = silent;
    const { code, stdout } = await print(LATEST, world, script("hello"));
    assert.deepEqual([code, stdout], [0, "hello\n"]);
  }));

test("lines fit the terminal and contain no control characters", async () => {
  const { fitting, renderCall, renderResult } = await import(join(EXTENSION, "render.ts"));
  const theme = { fg: (_colour, text) => text, bold: (text) => text };
  const nasty = "\u001b[31mwide 漢字 e\u0301 \u{1f469}\u200d\u{1f469} \u202e\t".repeat(20);
  for (const width of [4, 10, 37, 80]) {
    for (const expanded of [false, true]) {
      const call = renderCall({ name: "x", title: nasty }, { a: nasty }, theme, { expanded });
      const result = renderResult({ content: [{ type: "text", text: `${nasty}\n${nasty}` }] }, { expanded }, theme, {});
      for (const line of [...call.render(width), ...result.render(width)]) {
        assert.ok([...line].length <= width, `${width}: ${line}`);
        assert.doesNotMatch(line, /[\p{Cc}\p{Bidi_Control}]/u);
      }
    }
  }
  assert.doesNotMatch(fitting(nasty, "rpc"), /[\u001b\u202e]/);
  assert.match(fitting("line\n".repeat(200), "tui"), /\(not all of it fits\)$/);
});
