// Functions that the APIs of models share.

// The text of a message's content; other parts are replaced by their kind.
export function partsText(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content == null ? "" : JSON.stringify(content);
  return content.map((part) => part.text ?? `[${part.type ?? Object.keys(part).join()}]`).join("\n");
}

// Splits arguments into two deltas, as a real model streams them in many.
export function halves(text) {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)].filter(Boolean);
}
