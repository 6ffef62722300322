// A destructive headless call: refused with the command that allows it, and run after that command.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { HOSTS } from "./hosts.mjs";
import { cli, inHome } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { answers, plain } from "./received.mjs";

const CONTENT = "written by a model";

for (const host of HOSTS) {
  const tool = host.hasPair ? "mcp_write" : "mcp";
  const write = (path) => JSON.stringify({ tool: "files_write_file", args: { path, content: CONTENT } });

  test(`a write is refused until the user allows it (${host.label})`, () =>
    inHome(host, { name: "write" }, async (world) => {
      const path = join(world.project, "new.txt");
      const run = async () => {
        await prompt(world, [`CALL ${tool} ${write(path)}`, "SAY finished"], { writes: true });
        return plain(answers(world.model).at(-1));
      };
      assert.match(await run(), /switchboard allow files\/write_file/);
      assert.ok(!existsSync(path), "the file was written although the call was refused");
      await cli(world, "allow", "files/write_file");
      const answer = await run();
      assert.ok(existsSync(path), `the file was not written: ${answer}`);
      assert.equal(readFileSync(path, "utf8"), CONTENT);
    }));

  if (!host.hasPair) continue;
  test(`a write through mcp is refused and names mcp_write (${host.label})`, () =>
    inHome(host, { name: "wrong-tool" }, async (world) => {
      const path = join(world.project, "new.txt");
      await cli(world, "allow", "files/write_file");
      await prompt(world, [`CALL mcp ${write(path)}`, "SAY finished"]);
      const [refused] = answers(world.model);
      assert.match(plain(refused), /mcp_write/);
      assert.ok(!existsSync(path), "the file was written through the read-only tool");
    }));
}
