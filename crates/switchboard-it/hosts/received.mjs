// What the model received, as its requests have it.

// The requests that are turns of the model: those with tools.
export const turns = ({ requests }) => requests.filter(({ tools }) => tools?.length > 0);

// The results of tools, each as the model was given it first; a host may shorten it later.
export const results = (model) =>
  turns(model).flatMap(({ messages }) => {
    const answered = messages.findLastIndex(({ role }) => role === "assistant");
    return answered < 0 ? [] : messages.slice(answered + 1).filter(({ role }) => role === "tool");
  });

// What the model called, with the arguments as it wrote them.
export const calls = (model) =>
  turns(model).flatMap(({ reply }) => reply.calls).map(({ name, args }) => `${name} ${args}`);

export const count = (text, piece) => text.split(piece).length - 1;
