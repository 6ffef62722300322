// The parts of Anthropic's Messages API that hosts use.

import { halves, partsText } from "./parts.mjs";

export const isRequest = (path) => /\/messages$/.test(path);

export function read(body) {
  const messages = [];
  for (const message of body.messages ?? []) {
    const { role, content } = message;
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "assistant") {
      const calls = parts.filter(({ type }) => type === "tool_use").map(({ name }) => name);
      messages.push({ role, text: partsText(parts), calls });
      continue;
    }
    for (const part of parts) {
      if (part.type === "tool_result") {
        messages.push({ role: "tool", text: partsText(part.content), error: part.is_error === true, as: part });
      } else {
        messages.push({ role: "user", text: part.text ?? `[${part.type}]` });
      }
    }
  }
  return { tools: (body.tools ?? []).map((tool) => ({ name: tool.name, definition: tool })), messages };
}

export function write({ text, calls }, { body, number, json, stream }) {
  const content = text ? [{ type: "text", text }] : [];
  for (const [index, { name, args }] of calls.entries()) {
    content.push({ type: "tool_use", id: `toolu_${number}_${index}`, name, input: JSON.parse(args) });
  }
  const stop = { stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null };
  const usage = { input_tokens: 100, output_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  const message = { id: `msg_${number}`, type: "message", role: "assistant", model: body.model, content, ...stop, usage };
  if (!body.stream) return json(message);
  const events = stream();
  const send = (type, data) => events.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  send("message_start", { message: { ...message, content: [], stop_reason: null } });
  for (const [index, block] of content.entries()) {
    const empty = block.type === "text" ? { text: "" } : { input: {} };
    send("content_block_start", { index, content_block: { ...block, ...empty } });
    const deltas = block.type === "text"
      ? [{ type: "text_delta", text: block.text }]
      : halves(JSON.stringify(block.input)).map((half) => ({ type: "input_json_delta", partial_json: half }));
    for (const delta of deltas) send("content_block_delta", { index, delta });
    send("content_block_stop", { index });
  }
  send("message_delta", { delta: stop, usage: { output_tokens: 10 } });
  send("message_stop", {});
  events.end();
}
