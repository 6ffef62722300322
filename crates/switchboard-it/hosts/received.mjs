// Parses the requests that the model received.

// The requests that are turns of the model: those with tools.
export const turns = ({ requests }) => requests.filter(({ tools }) => tools?.length > 0);

// Each call of the model with its answer, as the host first gave it; a later request may shorten it.
// Calls of the host's own tool search are left out.
export function answers(model) {
  const asked = turns(model);
  return asked.flatMap(({ reply }, index) => {
    const { messages = [] } = asked[index + 1] ?? {};
    const last = messages.findLastIndex(({ role }) => role === "assistant");
    const [call] = reply.calls;
    if (call === undefined || call.isLoad) return [];
    const [answer] = messages.slice(last + 1).filter(({ role }) => role === "tool");
    return [{ call: `${call.name} ${call.args}`, text: "(no answer)", ...answer }];
  });
}

// The calls of the model, with the arguments as it wrote them.
export const calls = (model) =>
  turns(model).flatMap(({ reply }) => reply.calls).map(({ name, args }) => `${name} ${args}`);

// The text of an answer, which some hosts wrap in JSON.
export function plain({ text }) {
  const json = text.slice(Math.max(text.search(/^["{]/m), 0));
  try {
    const value = JSON.parse(json);
    if (typeof value === "string") return value;
    return value.content.map((part) => part.text ?? `[${part.type}]`).join("\n");
  } catch {
    // Truncated JSON still has its escapes.
    return /^["{]/.test(json) ? text.replaceAll("\\n", "\n").replaceAll('\\"', '"') : text;
  }
}

// Whether a definition is that of our tool, under any prefix of the host.
export const isOurs = (tool) => ({ name, namespace = "" }) =>
  /switchboard/.test(namespace + name) && new RegExp(`(^|[_.-])${tool}$`).test(name);

export const count = (text, piece) => text.split(piece).length - 1;
