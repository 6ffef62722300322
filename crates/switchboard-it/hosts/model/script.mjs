// The next turn of the fake model: it executes the lines of its prompt, one each turn.
//
//   CALL TOOL ARGS     calls the tool once; ARGS may be `base64:…`, to keep them off the screen
//   FOLLOW TOOL ARGS   calls the tool, then reads the stored result page by page as the answers say
//   SAY TEXT           answers with the text and ends the turn
//   HOLD               never answers
//
// After the last line it says `DONE`. It keeps no state: its progress follows from the messages, so that
// it answers a repeated request in the same way.

const LINE = /^\s*(CALL|FOLLOW|SAY|HOLD)\b ?(.*)$/;
const MOST_PAGES = 100;

// `ways` describes how to call a tool that is not among the definitions:
//   load   {tool, args, ask}: the host's own tool search, which is called once with `args`; `ask` makes
//          the arguments for a search by words
//   carry  {tool, args}: the tool that calls other tools, with its arguments for such a call
export function nextTurn({ tools, messages }, ways = {}) {
  const prompt = messages.findLastIndex(({ role, text }) => role === "user" && stepsOf(text).length > 0);
  if (prompt < 0) return { text: "OK", calls: [] };
  const steps = stepsOf(messages[prompt].text);
  const turns = turnsOf(messages.slice(prompt + 1));
  // The search takes a turn of its own, unless the prompt names it.
  const load = steps.some(({ tool }) => tool === ways.load?.tool) ? undefined : ways.load;
  const isLoad = ({ calls }) => load !== undefined && calls.includes(load.tool);

  let [step, pages] = [0, []];
  for (const turn of turns.filter((turn) => !isLoad(turn))) {
    const { verb } = steps[step] ?? {};
    pages.push(...turn.results);
    if (verb === "FOLLOW" && pages.length < MOST_PAGES && nextPage(pages)) continue;
    [step, pages] = [step + 1, []];
  }
  const { verb, tool, args } = steps[step] ?? { verb: "SAY", args: "DONE" };
  if (verb === "SAY") return { text: args, calls: [] };
  if (verb === "HOLD") return { hold: true, calls: [] };
  const page = verb === "FOLLOW" ? nextPage(pages) : undefined;
  const isLoaded = turns.some(isLoad);
  return { calls: [reach(tool, page ? JSON.stringify(page) : args, tools, { ...ways, load, isLoaded })] };
}

export const stepsOf = (text) =>
  text.split("\n").flatMap((line) => {
    const [, verb, rest] = LINE.exec(line) ?? [];
    if (verb === undefined) return [];
    if (verb === "SAY" || verb === "HOLD") return [{ verb, args: rest }];
    const [, tool, args] = /^(\S+)\s*(.*)$/.exec(rest);
    return [{ verb, tool, args: decoded(args || "{}") }];
  });

const decoded = (args) =>
  (args.startsWith("base64:") ? Buffer.from(args.slice("base64:".length), "base64").toString() : args);

// Each turn of the model, with the results of its calls.
function turnsOf(messages) {
  const turns = [];
  for (const { role, text, calls } of messages) {
    if (role === "assistant") turns.push({ calls: calls ?? [], results: [] });
    if (role === "tool") turns.at(-1)?.results.push(text);
  }
  return turns;
}

// The next page, according to the newest page; an earlier page may have the id.
export function nextPage(pages) {
  const id = pages.flatMap((text) => [...text.matchAll(/\bresult: ([\w-]+)/g)].map(([, id]) => id)).at(-1);
  const offset = offsetIn(pages.at(-1) ?? "");
  if (id === undefined || offset === undefined) return undefined;
  const before = offsetIn(pages.at(-2) ?? "") ?? -1;
  return offset > before ? { result: id, offset } : undefined;
}

function offsetIn(text) {
  const found = [...text.matchAll(/next offset: ([\d,]+)/g)].at(-1)
    ?? [...text.matchAll(/left out, from (?:within the line at )?offset ([\d,]+)/g)].at(-1);
  return found && Number(found[1].replaceAll(",", ""));
}

// Calls a tool: by its definition, through another tool, after a search of the host, or by its bare name.
function reach(tool, args, tools, { load, carry, isLoaded }) {
  const defined = find(tool, tools);
  if (defined) return { ...defined, args };
  const loader = load && !isLoaded && find(load.tool, tools);
  if (loader) return { ...loader, args: JSON.stringify(load.args), isLoad: true };
  const carrier = carry && find(carry.tool, tools);
  if (carrier) return { ...carrier, args: carry.args(tool, args) };
  return { name: tool, args };
}

// A definition by its exact name, or by the end of its name: each host has its own prefix.
function find(tool, tools) {
  const ends = ({ name }) => /switchboard/.test(name) && [`_${tool}`, `-${tool}`, `.${tool}`].some((end) => name.endsWith(end));
  return tools.find(({ name, namespace }) => name === tool || `${namespace ?? ""}${name}` === tool) ?? tools.find(ends);
}
