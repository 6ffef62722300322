// The form of an elicitation, filled in field by field.

import type { Ui } from "./dialogs.ts";
import type { Json } from "./link.ts";

/** Thrown when the user closes a dialog. */
class Cancelled extends Error {}
type Choice = [words: string, value: unknown];
const DONE: Choice = ["(done)", Symbol("done")];
const BOOLEAN = [{ const: false, title: "No" }, { const: true, title: "Yes" }];
const OMIT: Choice = ["(leave it out)", undefined];

/** The user's response; `asker` is the server, or undefined if the program itself asks. */
export async function fill(form: Json, ui: Ui, asker: string | undefined): Promise<Json> {
  const schema = form.requestedSchema ?? {};
  const names = Object.keys(schema.properties ?? {});
  const filling = new Filling(schema, ui, asker);
  try {
    // A single choice from the program itself is one dialog.
    const choices = asker === undefined && names.length === 1 ? choicesOf(schema.properties[names[0]]) : undefined;
    if (choices) return { action: "accept", content: { [names[0]]: await filling.pick(form.message, choices) } };
    if (!(await filling.pick(form.message, [["Decline", false], ["Continue", true]]))) return { action: "decline" };
    for (;;) {
      const content: Json = {};
      for (const name of names) content[name] = await filling.ask(name);
      const title = `Send this to ${asker}?\n\n${JSON.stringify(content, null, 2)}`;
      const end = await filling.pick(title, [["Decline", "decline"], ["Edit", "edit"], ["Send", "accept"]]);
      if (end !== "edit") return end === "accept" ? { action: end, content } : { action: end };
    }
  } catch (error) {
    if (error instanceof Cancelled) return { action: "cancel" };
    throw error;
  }
}

class Filling {
  constructor(private readonly schema: Json, private readonly ui: Ui, private readonly asker?: string) {}

  /** The value of a field, if any. Each question names its server. */
  async ask(name: string): Promise<unknown> {
    const field: Json = this.schema.properties[name];
    const optional = !this.schema.required?.includes(name);
    const title = `${this.asker} asks: ${[field.title ?? name, field.description].filter(Boolean).join(": ")}`;
    if (field.type === "array") return this.several(title, field, optional);
    const choices = choicesOf(field);
    if (choices !== undefined) return this.pick(title, optional ? [...choices, OMIT] : choices);
    const usual = field.default === undefined ? (optional ? " (optional)" : "") : ` [${field.default}]`;
    for (let fault = ""; ; ) {
      const text = (await this.ui.input(title + usual + fault, `${field.format ?? field.type ?? ""}`))?.trim();
      if (text === undefined) throw new Cancelled();
      if (text === "" && (field.default !== undefined || optional)) return field.default;
      const value = field.type === "number" || field.type === "integer" ? Number(text || NaN) : text;
      const wrong = faultOf(value, field);
      if (wrong === undefined) return value;
      fault = ` (${wrong})`;
    }
  }

  async pick(title: string, choices: Choice[]): Promise<unknown> {
    const words = choices.map(([words]) => words);
    // Equal labels get a number.
    const shown = words.map((word, at) => (words.indexOf(word) === at ? word : `${word} (${at + 1})`));
    const chosen = choices[shown.indexOf((await this.ui.select(title, shown)) ?? "")];
    if (chosen === undefined) throw new Cancelled();
    return chosen[1];
  }

  private async several(title: string, field: Json, optional: boolean): Promise<unknown> {
    const choices = choicesOf(field.items ?? {}) ?? [];
    const chosen: Choice[] = [];
    while (chosen.length < Math.min(choices.length, field.maxItems ?? Infinity)) {
      const left = choices.filter((choice) => !chosen.includes(choice)).map((choice): Choice => [choice[0], choice]);
      const end = chosen.length >= (field.minItems ?? 0) ? [DONE] : [];
      const one = await this.pick(`${title} [${chosen.map(([words]) => words).join(", ")}]`, [...left, ...end]);
      if (one === DONE[1]) break;
      chosen.push(one as Choice);
    }
    return optional && chosen.length === 0 ? field.default : chosen.map(([, value]) => value);
  }
}

/** The choices of a field, in each form that a revision of MCP defines; undefined if it has none. */
function choicesOf(field: Json): Choice[] | undefined {
  const named: Json[] | undefined = field.oneOf ?? field.anyOf;
  const plain = field.enum?.map((value: unknown, at: number) => ({ const: value, title: field.enumNames?.[at] }));
  const all: Json[] | undefined = field.type === "boolean" ? BOOLEAN : (named ?? plain);
  const choices = all?.map((one): Choice => [`${one.title ?? one.const}`, one.const]);
  // The default comes first.
  return choices?.toSorted((one, other) => Number(other[1] === field.default) - Number(one[1] === field.default));
}

/** Checks a value as the server does, so that the user learns of a mistake at once. */
function faultOf(value: string | number, field: Json): string | undefined {
  const isNumber = typeof value === "number";
  const size = isNumber ? value : value.length;
  const [least, most] = isNumber ? [field.minimum, field.maximum] : [field.minLength ?? 1, field.maxLength];
  if (!Number.isFinite(size)) return "a number is needed";
  if (field.type === "integer" && !Number.isInteger(size)) return "a whole number is needed";
  return size < least ? `${least} or more` : size > most ? `${most} or less` : undefined;
}
