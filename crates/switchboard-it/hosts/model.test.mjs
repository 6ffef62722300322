// The fake model: it follows the script in its prompt, and reads stored results page by page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nextTurn } from "./model/script.mjs";
import { plain } from "./received.mjs";

const user = (...lines) => ({ role: "user", text: lines.join("\n") });
const called = (name, result) => [{ role: "assistant", text: "", calls: [name] }, { role: "tool", text: result }];
const defined = (...names) => names.map((name) => ({ name }));

const READ = 'FOLLOW mcp {"tool":"read"}';

test("script lines run in order, then the model says DONE", () => {
  const messages = [user("Go on.", 'CALL mcp {"search":"x"}', "SAY finished"), ...called("mcp", "nothing")];
  assert.deepEqual(nextTurn({ tools: defined("mcp"), messages: messages.slice(0, 1) }).calls, [{ name: "mcp", args: '{"search":"x"}' }]);
  assert.equal(nextTurn({ tools: defined("mcp"), messages }).text, "finished");
  messages.push({ role: "assistant", text: "finished", calls: [] });
  assert.equal(nextTurn({ tools: defined("mcp"), messages }).text, "DONE");
});

test("a stored result is read until no offset follows", () => {
  const pages = ["[result: abc]\n1\n[… 3 lines left out, from offset 1 …]\n5\n[result: abc · 5 lines]", "2\n3\n[lines 2-3 of 5 · next offset: 3]"];
  const messages = [user(READ, "SAY finished"), ...called("mcp", pages[0])];
  const next = () => nextTurn({ tools: defined("mcp"), messages });
  assert.equal(next().calls[0].args, '{"result":"abc","offset":1}');
  messages.push(...called("mcp", pages[1]));
  assert.equal(next().calls[0].args, '{"result":"abc","offset":3}');
  messages.push(...called("mcp", "4\n5\n[lines 4-5 of 5]"));
  assert.equal(next().text, "finished");
});

test("a result without an id is not followed", () => {
  const messages = [user(READ, "SAY finished"), ...called("mcp", "1\n[lines 1-1 of 5 · next offset: 1]")];
  assert.equal(nextTurn({ tools: defined("mcp"), messages }).text, "finished");
});

test("an undefined tool is loaded once, then called through another tool", () => {
  const ways = { load: { tool: "search", args: { query: "mcp" } }, carry: { tool: "run", args: (tool, args) => `${tool}(${args})` } };
  const tools = defined("search", "run");
  const messages = [user("CALL mcp {}", "SAY finished")];
  assert.equal(nextTurn({ tools, messages }, ways).calls[0].name, "search");
  messages.push(...called("search", "found"));
  assert.equal(nextTurn({ tools, messages }, ways).calls[0].args, "mcp({})");
  messages.push(...called("run", "answer"));
  assert.equal(nextTurn({ tools, messages }, ways).text, "finished");
});

test("a tool is found under the prefix of a host", () => {
  const tools = defined("switchboard_mcp_write", "switchboard_mcp");
  const call = (tool) => nextTurn({ tools, messages: [user(`CALL ${tool} {}`)] }).calls[0].name;
  assert.deepEqual([call("mcp"), call("mcp_write")], ["switchboard_mcp", "switchboard_mcp_write"]);
});

test("the text of a result is extracted from the JSON of a host", () => {
  const result = JSON.stringify({ content: [{ type: "text", text: "a\nb" }] });
  for (const text of ["a\nb", '"a\\nb"', result, `Script completed\nOutput:\n${result}`]) assert.equal(plain({ text }), "a\nb");
});
