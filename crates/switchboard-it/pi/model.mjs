// A fake model that follows a script in the prompt, over OpenAI's chat completions API.
//
// A prompt made by `script` has the turns of the model: each is a text, or calls that are made at
// once. After the last turn it says `done: ` and the last tool result. To a prompt without a script
// it says `heard: ` and the prompt.

import { createServer } from "node:http";

const MARK = "do: ";

export const script = (...turns) => MARK + JSON.stringify(turns);

// A turn that calls the tool `mcp` once.
export const mcp = (args) => [["mcp", args]];

// Calls `use` with a running model; `requests` has the bodies of its requests.
export async function withModel(use) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    if (!request.url.endsWith("/chat/completions")) return response.writeHead(404).end();
    const asked = JSON.parse(body);
    requests.push(asked);
    answer(asked, requests.length, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use({ requests, url: `http://127.0.0.1:${server.address().port}/v1` });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

export const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");

// The tool results in the last request of the model.
export const toldByTools = (requests) => {
  const { messages } = requests.at(-1);
  return messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
};

function turn(messages) {
  const user = messages.findLastIndex(({ role, content }) => role === "user" && textOf(content).includes(MARK));
  if (user < 0) return `heard: ${textOf(messages.findLast(({ role }) => role === "user")?.content)}`;
  const prompt = textOf(messages[user].content);
  const turns = JSON.parse(prompt.slice(prompt.indexOf(MARK) + MARK.length));
  const played = messages.slice(user + 1).filter(({ role }) => role === "assistant").length;
  const last = messages.findLast(({ role }) => role === "tool");
  return turns[played] ?? `done: ${textOf(last?.content)}`;
}

function answer({ model, messages }, number, response) {
  const next = turn(messages);
  const says = typeof next === "string";
  const deltas = says ? [{ content: next }] : next.flatMap((call, index) => pieces(call, index, number));
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  const send = (data) => response.write(`data: ${JSON.stringify({ id: `answer-${number}`, model, ...data })}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const delta of [{ role: "assistant", content: "" }, ...deltas]) send({ choices: [{ index: 0, delta }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: says ? "stop" : "tool_calls" }], usage });
  response.end("data: [DONE]\n\n");
}

// The arguments of a call come in two deltas, as a real model streams them in many.
function pieces([name, args], index, number) {
  const text = JSON.stringify(args);
  const half = text.length / 2;
  const id = `call-${number}-${index}`;
  const first = { index, id, type: "function", function: { name, arguments: text.slice(0, half) } };
  const second = { index, function: { arguments: text.slice(half) } };
  return [first, second].map((call) => ({ tool_calls: [call] }));
}
