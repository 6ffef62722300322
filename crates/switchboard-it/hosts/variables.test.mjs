// A server that `install --move` moves out of a host keeps its environment variables.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HOSTS } from "./hosts.mjs";
import { cli, inHome, servers } from "./home.mjs";
import { prompt } from "./launch.mjs";
import { answers, plain } from "./received.mjs";

const VALUE = "a-value-of-the-user";

for (const host of HOSTS.filter(({ variable }) => variable)) {
  const moved = async (world) => {
    world.env.MY_TOKEN = VALUE;
    const { everything } = servers(world);
    host.servers(world, { everything: { ...everything, ...host.variable("MY_TOKEN") } });
    await cli(world, "install", host.name, "--move", "--yes");
  };
  test(`a moved server has its environment variable (${host.label})`, () =>
    inHome(host, { name: "variables", setup: moved }, async (world) => {
      await prompt(world, ['CALL mcp {"tool":"everything_get-env"}', "SAY finished"]);
      const [environment] = answers(world.model);
      assert.match(plain(environment), new RegExp(`"MY_TOKEN": *"${VALUE}"`));
    }));
}
