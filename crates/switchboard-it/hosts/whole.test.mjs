// A model that follows the page hints reads every line of a long result.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { KINDS } from "./hosts.mjs";
import { inHome } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { answers, plain } from "./received.mjs";

const SIZE = 200 * 1024;

const line = (number) => `line ${String(number).padStart(5, "0")} of a long file, with some words in it`;
const LINES = Array.from({ length: Math.ceil(SIZE / (line(0).length + 1)) }, (_, index) => line(index + 1));

// The numbers as ranges, such as `3-7, 9`.
function ranges(numbers) {
  const found = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(", ");
}

// The beginning and end of an answer, which have the page hints.
const ends = (answer) => {
  const text = plain(answer);
  const [head, tail] = [text.slice(0, 200), text.slice(-200)].map((end) => JSON.stringify(end));
  return `${answer.call.slice(0, 150)} → ${text.length} characters: ${head} … ${tail}`;
};

for (const host of KINDS) {
  test(`every line of 200 KiB reaches the model (${host.label})`, () =>
    inHome(host, { name: "whole" }, async (world) => {
      const path = join(world.project, "long.txt");
      writeFileSync(path, `${LINES.join("\n")}\n`);
      await prompt(world, [`FOLLOW mcp ${JSON.stringify({ tool: "files_read_text_file", args: { path } })}`, "SAY finished"]);
      const pages = answers(world.model);
      const received = new Set(pages.flatMap((page) => plain(page).split("\n")));
      const missing = LINES.flatMap((text, index) => (received.has(text) ? [] : [index + 1]));
      const which = `${missing.length} of ${LINES.length} lines are missing: ${ranges(missing).slice(0, 300)}`;
      assert.ok(missing.length === 0, [which, ...pages.slice(0, 6).map(ends)].join("\n"));
    }));
}
