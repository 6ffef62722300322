// Pi in rpc mode: prompts and commands in, events out, with answers to its dialogs.

import assert from "node:assert/strict";
import { stripVTControlCharacters } from "node:util";

import { start, toolEvents } from "./pi.mjs";

const DIALOGS = ["select", "confirm", "input", "editor"];
const PATIENCE_MS = 30_000;

// Calls `use` with a session of Pi and ends Pi. `answers` maps the request of a dialog to an answer:
// a value, true or false for a confirmation, or undefined to dismiss it.
export async function rpc(version, world, { answers = () => undefined, options = [] }, use) {
  const { child, ended } = start(version, world, [...options, "--mode", "rpc"], "pipe");
  const session = new Session(child, answers);
  const died = ended.then(({ stderr }) => { throw new Error(`Pi ended early: ${stderr}`); });
  died.catch(() => {});
  try {
    await Promise.race([use(session), died]);
  } catch (error) {
    child.kill("SIGKILL");
    const { stderr } = await ended;
    throw new Error(`${error.message}\n${stderr}\n${session.tail()}`, { cause: error });
  }
  child.stdin.end();
  return ended;
}

class Session {
  events = [];
  dialogs = [];
  #child;
  #answers;
  #waiting = new Set();
  #rest = "";
  #requests = 0;

  constructor(child, answers) {
    this.#child = child;
    this.#answers = answers;
    child.stdout.on("data", (text) => this.#read(text));
  }

  // Only LF ends a line; other line separators can be part of a text.
  #read(text) {
    this.#rest += text;
    const lines = this.#rest.split("\n");
    this.#rest = lines.pop();
    for (const line of lines) this.#take(JSON.parse(line));
  }

  #take(event) {
    this.events.push(event);
    if (event.type === "extension_ui_request" && DIALOGS.includes(event.method)) {
      this.dialogs.push(event);
      this.#answer(event);
    }
    for (const look of this.#waiting) look();
  }

  #answer(dialog) {
    const answer = this.#answers(dialog);
    const key = dialog.method === "confirm" ? "confirmed" : "value";
    const given = answer === undefined ? { cancelled: true } : { [key]: answer };
    this.#send({ type: "extension_ui_response", id: dialog.id, ...given });
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  // The first event, from index `since` on, for which `is` holds.
  until(what, is, since = 0) {
    return new Promise((resolve, reject) => {
      const give = (settle, value) => {
        this.#waiting.delete(look);
        clearTimeout(timer);
        settle(value);
      };
      const look = () => {
        const found = this.events.slice(since).find(is);
        if (found) give(resolve, found);
      };
      const timer = setTimeout(() => give(reject, new Error(`timed out: ${what}`)), PATIENCE_MS);
      this.#waiting.add(look);
      look();
    });
  }

  // Sends a command of the protocol; returns the data of its response.
  async command(type, params = {}) {
    this.#requests += 1;
    const id = `request-${this.#requests}`;
    const since = this.events.length;
    this.#send({ id, type, ...params });
    const isAnswer = (event) => event.type === "response" && event.id === id;
    const answer = await this.until(`the answer to ${type}`, isAnswer, since);
    assert.ok(answer.success, JSON.stringify(answer));
    return answer.data;
  }

  // Runs a prompt to its end; returns the events of its tool calls.
  async prompt(message) {
    const since = this.events.length;
    await this.command("prompt", { message });
    await this.until("the end of the run", ({ type }) => type === "agent_settled", since);
    return toolEvents(this.events.slice(since));
  }

  // Runs a slash command; returns the notices that it showed.
  async slash(line) {
    const since = this.events.length;
    await this.command("prompt", { message: line });
    return this.notices(since).join("\n");
  }

  // Repeats a command until its output matches `pattern`: Pi notices outside changes with a delay.
  async untilShown(line, pattern) {
    for (const end = performance.now() + PATIENCE_MS; ; ) {
      const shown = await this.slash(line);
      if (pattern.test(shown)) return;
      assert.ok(performance.now() < end, `${line} never showed ${pattern}: ${shown}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  notices(since = 0) {
    const shown = ({ type, method }) => type === "extension_ui_request" && method === "notify";
    return this.events.slice(since).filter(shown).map(({ message }) => stripVTControlCharacters(message));
  }

  // The present text of the footer.
  footer() {
    const set = this.events.filter(({ type, method }) => type === "extension_ui_request" && method === "setStatus");
    const text = set.at(-1)?.statusText;
    return text && stripVTControlCharacters(text);
  }

  // The last events, for a failure message.
  tail() {
    return this.events.slice(-8).map((event) => JSON.stringify(event).slice(0, 300)).join("\n");
  }
}
