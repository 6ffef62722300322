// Google's Gemini API.

import { partsText } from "./parts.mjs";

export const isRequest = (path) => /:(stream)?[gG]enerateContent$/.test(path);

export function read(body) {
  const messages = [];
  for (const { role, parts = [] } of body.contents ?? []) {
    if (role === "model") {
      const calls = parts.filter(({ functionCall }) => functionCall).map(({ functionCall }) => functionCall.name);
      messages.push({ role: "assistant", text: partsText(parts), calls });
      continue;
    }
    for (const part of parts) {
      const { response } = part.functionResponse ?? {};
      if (response) {
        const text = response.output ?? response.error ?? JSON.stringify(response);
        messages.push({ role: "tool", text, error: response.error !== undefined, as: part });
      } else {
        messages.push({ role: "user", text: part.text ?? `[${Object.keys(part).join()}]` });
      }
    }
  }
  const declared = (body.tools ?? []).flatMap(({ functionDeclarations }) => functionDeclarations ?? []);
  return { tools: declared.map((tool) => ({ name: tool.name, definition: tool })), messages };
}

export function write({ text, calls }, { url, number, json, stream }) {
  const parts = text ? [{ text }] : [];
  for (const [index, { name, args }] of calls.entries()) {
    const functionCall = { id: `call_${number}_${index}`, name, args: JSON.parse(args) };
    parts.push({ functionCall, thoughtSignature: "ZmFrZQ==" });
  }
  const answer = {
    candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    modelVersion: "fake",
    responseId: `answer-${number}`,
  };
  if (!url.includes(":streamGenerateContent")) return json(answer);
  if (!url.includes("alt=sse")) return json([answer]);
  stream().end(`data: ${JSON.stringify(answer)}\n\n`);
}
