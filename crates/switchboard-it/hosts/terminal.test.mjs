// A destructive call in a terminal UI: one question, which shows path and content, and an approval.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { HOSTS } from "./hosts.mjs";
import { inHome } from "./home.mjs";
import { end, processesOf } from "../pi/processes.mjs";
import { squeezed } from "../pi/screen.mjs";
import { onTerminal } from "./terminal.mjs";

const CONTENT = "written by a model";

for (const host of HOSTS.filter(({ terminal }) => terminal)) {
  test(`a write asks for approval once, with path and content visible (${host.label})`, () =>
    inHome(host, { name: "terminal" }, async (world) => {
      await host.terminal.settings(world);
      const path = join(world.project, "new.txt");
      // Encoded, so that visible text comes from the question and not from the prompt.
      const args = Buffer.from(JSON.stringify({ tool: "files_write_file", args: { path, content: CONTENT } }));
      await onTerminal(world, async (screen) => {
        await screen.sees(host.terminal.ready);
        await screen.enter(`CALL mcp_write base64:${args.toString("base64")}`);
        const shows = (text) => squeezed(screen.text()).includes(squeezed(text));
        await screen.until("a question with path and content", () => shows(path) && shows(CONTENT) && step(host, screen));
        assert.ok(!existsSync(path), "the file was written before anything was chosen");
        const questions = await approve(host, screen, () => existsSync(path));
        assert.equal(readFileSync(path, "utf8"), CONTENT);
        assert.equal(questions.length, 1, `the user was asked ${questions.length} times: ${questions.join(" · ")}`);
      });
      // Some hosts leave a daemon that keeps the servers; closing the terminal does not end it.
      const daemons = processesOf(world).filter(({ command }) => host.terminal.daemon?.test(command.join(" ")));
      for (const { pid } of daemons) end(pid, "SIGTERM");
    }));
}

// The keys to type for the present screen.
const step = ({ terminal }, screen) => terminal.keys.find(([pattern]) => pattern.test(screen.text()));

// Types approving keys, one for each screen, until `isDone`; returns the questions.
async function approve(host, screen, isDone) {
  const questions = new Set();
  for (;;) {
    await screen.until("the next question", () => isDone() || step(host, screen));
    if (isDone()) return [...questions];
    const [pattern, keys] = step(host, screen);
    for (const question of host.terminal.questions) if (question.test(screen.text())) questions.add(question.source);
    await screen.press(keys, `no ${pattern}`, () => isDone() || !pattern.test(screen.text()));
  }
}
