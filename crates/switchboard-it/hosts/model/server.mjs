// The fake model on 127.0.0.1: answers all four APIs and keeps every request.

import { once } from "node:events";
import { createServer } from "node:http";

import * as anthropic from "./anthropic.mjs";
import * as chat from "./chat.mjs";
import * as gemini from "./gemini.mjs";
import * as responses from "./responses.mjs";
import { nextTurn } from "./script.mjs";

const APIS = { anthropic, chat, gemini, responses };

// Answers to side requests of hosts, such as for a title, which have no tools.
const SIDE_TEXT = "A test";
const SIDE_JSON = JSON.stringify({
  title: SIDE_TEXT, isNewTopic: false, next_speaker: "user", reasoning: "none",
  model_choice: "flash", complexity_score: 1, complexity_reasoning: "none",
});

// Calls `use` with a running model. `requests` has the requests of the host, in order; those with tools
// are the model's turns. `held` counts the turns without an answer. `ways`: see script.mjs.
export async function withModel(ways, use) {
  const model = { requests: [], held: 0 };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
      take(model, ways, request, Buffer.concat(chunks).toString(), response);
    } catch (error) {
      model.requests.push({ url: request.url, failed: String(error.stack) });
      response.destroy();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  model.url = `http://127.0.0.1:${server.address().port}`;
  try {
    return await use(model);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function take(model, ways, { method, url }, raw, response) {
  const json = (value) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  const stream = () => response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });

  const path = url.split("?")[0];
  const [api, { read, write } = {}] =
    Object.entries(APIS).find(([, { isRequest }]) => method === "POST" && isRequest(path)) ?? [];
  if (api === undefined) return takeOther(path, raw, json, response);

  const body = JSON.parse(raw);
  const seen = read(body);
  const request = { api, url, raw, body, ...seen };
  model.requests.push(request);
  const answer = { body, url, number: model.requests.length, json, stream };
  if (seen.tools.length === 0) {
    const wantsJson = /"(json_schema|json_object|application\/json)"/.test(raw);
    return write({ text: wantsJson ? SIDE_JSON : SIDE_TEXT, calls: [] }, answer);
  }
  request.reply = nextTurn(seen, ways);
  if (request.reply.hold) model.held += 1;
  else write(request.reply, answer);
}

// Answers requests for lists of models and token counts, which some hosts send.
function takeOther(path, raw, json, response) {
  const tokens = Math.ceil(raw.length / 4);
  if (/(\/count_tokens|:countTokens)$/.test(path)) return json({ input_tokens: tokens, totalTokens: tokens });
  if (/\/models$/.test(path)) {
    const data = [{ id: "fake", object: "model", type: "model", display_name: "fake" }];
    return json({ object: "list", data, models: [], has_more: false });
  }
  response.writeHead(404, { "content-type": "application/json" });
  response.end('{"error":{"type":"not_found_error","message":"not here"}}');
}
