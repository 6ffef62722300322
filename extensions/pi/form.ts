// A form of a server, filled in field by field in Pi's dialogs.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

import type { Json } from "./link.ts";

/** What a dialog that was closed comes to. */
class Cancelled extends Error {}

type Choice = [words: string, value: unknown];

const DONE = "(done)";

export async function fill(form: Json, ctx: ExtensionContext, signal: AbortSignal): Promise<Json> {
  const fields = Object.entries<Json>(form.requestedSchema?.properties ?? {});
  const needed = (name: string): boolean => form.requestedSchema?.required?.includes(name) ?? false;
  const pick = async (title: string, choices: Choice[]): Promise<unknown> => {
    const words = await ctx.ui.select(title, choices.map(([words]) => words), { signal });
    const chosen = choices.find((choice) => choice[0] === words);
    if (chosen === undefined) throw new Cancelled();
    return chosen[1];
  };
  const several = async (title: string, choices: Choice[]): Promise<unknown> => {
    const chosen: Choice[] = [];
    while (chosen.length < choices.length) {
      const left = choices.filter((choice) => !chosen.includes(choice)).map(([words]): Choice => [words, words]);
      const words = await pick(`${title}: ${chosen.map(([words]) => words).join(", ")}`, [...left, [DONE, DONE]]);
      if (words === DONE) break;
      chosen.push(choices.find((choice) => choice[0] === words)!);
    }
    return chosen.map(([, value]) => value);
  };
  const ask = async (name: string, field: Json): Promise<unknown> => {
    const title = [field.title ?? name, field.description].filter(Boolean).join(": ");
    if (field.type === "array") return several(title, choicesOf(field.items ?? {}) ?? []);
    const choices = choicesOf(field);
    if (choices !== undefined) return pick(title, needed(name) ? choices : [...choices, ["(leave it out)", undefined]]);
    const example = `${field.default ?? field.format ?? field.type ?? ""}`;
    for (let fault = needed(name) ? "" : " (optional)"; ; ) {
      const text = await ctx.ui.input(title + fault, example, { signal });
      if (text === undefined) throw new Cancelled();
      if (text === "" && (field.default !== undefined || !needed(name))) return field.default;
      const value = field.type === "number" || field.type === "integer" ? Number(text || NaN) : text;
      const wrong = faultOf(value, field);
      if (wrong === undefined) return value;
      fault = ` (${wrong})`;
    }
  };
  try {
    const [[name, field]] = fields.length === 1 ? fields : [["", {}]];
    // A single choice needs no form around it: an approval is one.
    const choices = needed(name) ? choicesOf(field) : undefined;
    if (choices) return { action: "accept", content: { [name]: await pick(form.message, choices) } };
    if (!(await pick(form.message, [["Continue", true], ["Decline", false]]))) return { action: "decline" };
    for (;;) {
      const content: Json = {};
      for (const [name, field] of fields) content[name] = await ask(name, field);
      const shown = JSON.stringify(content, null, 2);
      const end = await pick(`Send this?\n\n${shown}`, [["Send", "accept"], ["Edit", "edit"], ["Decline", "decline"]]);
      if (end !== "edit") return end === "accept" ? { action: end, content } : { action: end };
    }
  } catch (error) {
    if (error instanceof Cancelled) return { action: "cancel" };
    throw error;
  }
}

/** What can be chosen, if the field is a choice: in all the ways that revisions of MCP have for it. */
function choicesOf(field: Json): Choice[] | undefined {
  if (field.type === "boolean") return [["Yes", true], ["No", false]];
  const named = field.oneOf ?? field.anyOf;
  if (Array.isArray(named)) return named.map((one: Json): Choice => [`${one.title ?? one.const}`, one.const]);
  return field.enum?.map((value: unknown, index: number): Choice => [`${field.enumNames?.[index] ?? value}`, value]);
}

/** The server checks what it gets; this spares the user a round. */
function faultOf(value: string | number, field: Json): string | undefined {
  const size = typeof value === "number" ? value : value.length;
  const isNumber = typeof value === "number";
  const [least, most] = isNumber ? [field.minimum, field.maximum] : [field.minLength ?? 1, field.maxLength];
  const unit = isNumber ? "" : " characters";
  if (Number.isNaN(size)) return "a number is needed";
  if (field.type === "integer" && !Number.isInteger(size)) return "a whole number is needed";
  if (size < (least ?? -Infinity)) return `at least ${least}${unit}`;
  return size > (most ?? Infinity) ? `at most ${most}${unit}` : undefined;
}
