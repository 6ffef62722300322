// OpenAI's Chat Completions API.

import { halves, partsText } from "./parts.mjs";

export const isRequest = (path) => /\/chat\/completions$/.test(path);

export function read(body) {
  const messages = (body.messages ?? []).map((message) => ({
    role: message.role,
    text: partsText(message.content),
    calls: (message.tool_calls ?? []).map((call) => call.function.name),
    as: message,
  }));
  const tools = (body.tools ?? []).map((tool) => ({ name: tool.function?.name ?? tool.name, definition: tool }));
  return { tools, messages };
}

export function write({ text, calls }, { body, number, json, stream }) {
  const finish_reason = calls.length > 0 ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const tool_calls = calls.map(({ name, args }, index) =>
    ({ index, id: `call_${number}_${index}`, type: "function", function: { name, arguments: args } }));
  const answer = { id: `chatcmpl-${number}`, created: 0, model: body.model };
  if (!body.stream) {
    const message = { role: "assistant", content: text ?? null, ...(calls.length > 0 && { tool_calls }) };
    return json({ ...answer, object: "chat.completion", usage, choices: [{ index: 0, finish_reason, message }] });
  }
  const events = stream();
  const send = (delta, more = {}) => {
    const choice = { index: 0, delta, finish_reason: more.finish_reason ?? null };
    const chunk = { ...answer, object: "chat.completion.chunk", choices: [choice], ...(more.usage && { usage: more.usage }) };
    events.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ role: "assistant", content: "" });
  if (text) send({ content: text });
  for (const call of tool_calls) {
    send({ tool_calls: [{ ...call, function: { ...call.function, arguments: "" } }] });
    for (const half of halves(call.function.arguments)) {
      send({ tool_calls: [{ index: call.index, function: { arguments: half } }] });
    }
  }
  send({}, { finish_reason, usage });
  events.end("data: [DONE]\n\n");
}
