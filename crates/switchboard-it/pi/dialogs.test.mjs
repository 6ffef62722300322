// Dialogs with the user: the approval of a call, and server-to-client requests.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { test } from "node:test";

import { inHome, ours } from "./home.mjs";
import { mcp, script, textOf, toldByTools } from "./model.mjs";
import { LATEST, VERSIONS, json, print } from "./pi.mjs";
import { rpc } from "./rpc.mjs";

const servers = (world) => ({ ours: ours(world) });
const erase = (what) => script(mcp({ tool: "ours_erase", args: { what } }));

// Runs one prompt, answers its dialogs with `answers` in order, and returns the last tool result.
async function asked(pi, world, prompt, ...answers) {
  pi.dialogs.length = 0;
  world.answers = answers;
  await pi.prompt(prompt);
  assert.deepEqual(world.answers, [], "every answer was used");
  return toldByTools(world.model.requests).at(-1);
}

const withUser = (version, world, use) =>
  rpc(version, world, { answers: () => world.answers.shift() }, use);

// The option of a dialog that begins with `start`.
const option = ({ options }, start) => options.find((words) => words.startsWith(start));

for (const version of Object.keys(VERSIONS)) {
  test(`a destructive tool is allowed once, for the session, or denied (${version})`, () =>
    inHome({ servers }, (world) =>
      rpc(version, world, { answers: (dialog) => world.answer(dialog) }, async (pi) => {
        const answering = async (answer, what) => {
          pi.dialogs.length = 0;
          world.answer = answer;
          await pi.prompt(erase(what));
          return [pi.dialogs.length, toldByTools(world.model.requests).at(-1)];
        };
        const never = () => assert.fail("no dialog is expected");
        assert.deepEqual(await answering((dialog) => option(dialog, "Allow once"), "a"), [1, "erased a"]);
        const [{ title }] = pi.dialogs;
        assert.match(title, /ours/);
        assert.match(title, /erase/);
        assert.match(title, /"a"/);
        const [count, refusal] = await answering((dialog) => option(dialog, "Deny"), "b");
        assert.equal(count, 1);
        assert.match(refusal, /^MCP tool error: approval_denied: /);
        const [, dismissal] = await answering(() => undefined, "c");
        assert.match(dismissal, /^MCP tool error: approval_/);
        const session = (dialog) => dialog.options.find((words) => /tool.*session|session.*tool/i.test(words));
        assert.deepEqual(await answering(session, "d"), [1, "erased d"]);
        assert.deepEqual(await answering(never, "e"), [0, "erased e"]);
      })));

  test(`form and URL elicitation, sampling and roots are answered (${version})`, () =>
    inHome({ servers }, (world) =>
      withUser(version, world, async (pi) => {
        const form = script(mcp({ tool: "ours_ask_form" }));
        const filled = ["Continue", "Ada", "36", "large", "Yes", "Send"];
        assert.deepEqual(JSON.parse(await asked(pi, world, form, ...filled)), {
          action: "accept",
          content: { name: "Ada", age: 36, size: "large", news: true },
        });
        assert.match(pi.dialogs[0].title, /Who are you\?/);
        assert.deepEqual(JSON.parse(await asked(pi, world, form, "Decline")), { action: "decline" });

        const page = script(mcp({ tool: "ours_ask_url" }));
        assert.deepEqual(JSON.parse(await asked(pi, world, page, "I open it myself")), { action: "accept" });
        assert.match(pi.dialogs[0].title, /Sign in over there[^]*https:\/\/example\.com\/sign-in/);
        assert.deepEqual(JSON.parse(await asked(pi, world, page, "Decline")), { action: "decline" });

        const sample = script(mcp({ tool: "ours_sample" }));
        const answer = JSON.parse(await asked(pi, world, sample, "Ask it", "Send it"));
        assert.deepEqual(answer.content, { type: "text", text: "heard: a question of a server" });
        const question = world.model.requests.find(({ messages }) => textOf(messages[0].content) === "Answer shortly");
        assert.ok(question, "the model has the server's system prompt");
        assert.match((JSON.parse(await asked(pi, world, sample, "No"))).refused, /declined/);

        const [root] = JSON.parse(await asked(pi, world, script(mcp({ tool: "ours_roots" })))).roots;
        assert.equal(root.uri, pathToFileURL(world.project).href);
      })));
}

test("without dialogs, approvals and elicitation are refused", () =>
  inHome({ servers }, async (world) => {
    const { code } = await print(LATEST, world, erase("a"));
    assert.equal(code, 0);
    assert.match(toldByTools(world.model.requests).at(-1), /^MCP tool error: approval_required: /);

    const questions = ["ask_form", "ask_url", "sample"].map((tool) => mcp({ tool: `ours_${tool}` }));
    const { ends } = await json(LATEST, world, script(mcp({ tool: "ours_erase", args: { what: "b" } }), ...questions));
    assert.deepEqual([ends[0].isError, ends[0].result.details.code], [true, "approval_required"]);
    for (const text of toldByTools(world.model.requests).slice(1)) assert.match(text, /refused|decline|cancel|error/);
  }));
