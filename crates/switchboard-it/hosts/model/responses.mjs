// OpenAI's Responses API, with tool search and custom tools that take code.

import { halves, partsText } from "./parts.mjs";

export const isRequest = (path) => /\/responses$/.test(path);

export function read(body) {
  const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input ?? [];
  const messages = [];
  const tools = toolsOf(body.tools);
  for (const item of input) {
    const { type = "message", role, content } = item;
    if (/_output$/.test(type)) {
      messages.push({ role: "tool", text: partsText(item.output ?? JSON.stringify(item.tools)), as: item });
    } else if (/_call$/.test(type)) {
      messages.push({ role: "assistant", text: "", calls: [item.name ?? type.replace(/_call$/, "")] });
    } else if (role === "user" || role === "assistant") {
      messages.push({ role, text: partsText(content) });
    }
    if (type === "tool_search_output" || type === "additional_tools") tools.push(...toolsOf(item.tools));
  }
  return { tools, messages };
}

const toolsOf = (list) =>
  (list ?? []).flatMap((tool) =>
    tool.type === "namespace"
      ? (tool.tools ?? []).map(({ name, type }) => ({ name, kind: type, namespace: tool.name, definition: tool }))
      : [{ name: tool.name ?? tool.type, kind: tool.type, definition: tool }]);

export function write({ text, calls }, { body, number, json, stream }) {
  const output = text ? [message(text, number)] : [];
  output.push(...calls.map((call, index) => item(call, `${number}_${index}`)));
  const usage = {
    input_tokens: 100, input_tokens_details: { cached_tokens: 0 },
    output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 110,
  };
  const response = { id: `resp_${number}`, object: "response", created_at: 0, status: "completed", output, usage };
  response.model = body.model;
  if (!body.stream) return json(response);
  const events = stream();
  let sequence_number = 0;
  const send = (type, data) => {
    events.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...data })}\n\n`);
    sequence_number += 1;
  };
  send("response.created", { response: { ...response, status: "in_progress", output: [], usage: null } });
  for (const [output_index, whole] of output.entries()) {
    const at = { output_index, item_id: whole.id };
    if (whole.type === "message") {
      send("response.output_item.added", { output_index, item: { ...whole, status: "in_progress", content: [] } });
      send("response.output_text.delta", { ...at, content_index: 0, delta: whole.content[0].text });
    } else if (whole.type === "function_call") {
      send("response.output_item.added", { output_index, item: { ...whole, status: "in_progress", arguments: "" } });
      for (const delta of halves(whole.arguments)) send("response.function_call_arguments.delta", { ...at, delta });
    }
    send("response.output_item.done", { output_index, item: whole });
  }
  send("response.completed", { response });
  events.end();
}

const message = (text, number) => ({
  type: "message", id: `msg_${number}`, role: "assistant", status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});

function item({ name, namespace, kind, args }, id) {
  const common = { call_id: `call_${id}`, status: "completed" };
  if (kind === "tool_search") {
    return { type: "tool_search_call", id: `ts_${id}`, ...common, execution: "client", arguments: JSON.parse(args) };
  }
  const named = namespace && namespace !== "functions" ? { name, namespace } : { name };
  return kind === "custom"
    ? { type: "custom_tool_call", id: `ct_${id}`, ...common, ...named, input: args }
    : { type: "function_call", id: `fc_${id}`, ...common, ...named, arguments: args };
}
