// A headless model searches, describes and calls, without flags that skip permissions.

import assert from "node:assert/strict";
import { test } from "node:test";

import { KINDS } from "./hosts.mjs";
import { inHome } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { answers, count, plain } from "./received.mjs";

const call = (args) => `CALL mcp ${JSON.stringify(args)}`;

for (const host of KINDS) {
  test(`the first search finds a tool, and the tool runs (${host.label})`, () =>
    inHome(host, { name: "loop" }, async (world) => {
      const { stdout } = await prompt(world, [
        call({ search: "sum of two numbers" }),
        call({ describe: "everything_get-sum" }),
        call({ tool: "everything_get-sum", args: { a: 2, b: 40 } }),
        "SAY finished",
      ]);
      const [found, described, called] = answers(world.model);
      assert.match(plain(found), /everything_get-sum/, "search");
      assert.match(plain(described), /a: number/, "describe");
      assert.match(plain(called), /The sum of 2 and 40 is 42/, "call");
      assert.match(stdout, /finished/);
    }));

  test(`an error is marked and appears once (${host.label})`, () =>
    inHome(host, { name: "errors" }, async (world) => {
      await prompt(world, [
        call({ tool: "everything_get-sum", args: { a: 2 } }),
        call({ tool: "files_read_text_file", args: { path: `${world.project}/missing.txt` } }),
        "SAY finished",
      ]);
      const [wrong, missing] = answers(world.model);
      for (const [answer, words] of [[wrong, "`b` is required"], [missing, "ENOENT: no such file"]]) {
        const { text } = answer;
        assert.equal(count(text, words), host.errorCopies ?? 1, `how often "${words}" is in ${text}`);
        if (host.isError) assert.ok(host.isError(answer), `not marked: ${JSON.stringify(answer.as)}`);
      }
      for (const { raw } of world.model.requests) {
        assert.ok(!raw.includes("switchboard/details"), "details for Pi are in the prompt");
      }
    }));
}
