// Pieces that the APIs of models have in common.

// The text of a message's content, with the kind of everything that is not text.
export function partsText(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content == null ? "" : JSON.stringify(content);
  return content.map((part) => part.text ?? `[${part.type ?? Object.keys(part).join()}]`).join("\n");
}

// Arguments come in two halves, as those of a real model come in many pieces.
export function halves(text) {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)].filter(Boolean);
}
