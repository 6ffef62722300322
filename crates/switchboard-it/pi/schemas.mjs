// Input schemas of tools, with the schema that the model must receive if it differs.

const only = (schema) => ({ type: "object", properties: { value: schema }, required: ["value"] });

const UNCHANGED = {
  string: only({ type: "string", description: "A text", minLength: 1, maxLength: 80, pattern: "^[a-z]+$" }),
  number: only({ type: "number", minimum: 0, maximum: 1.5, description: "A part" }),
  integer: only({ type: "integer", minimum: 1, maximum: 9, exclusiveMinimum: 0, multipleOf: 2 }),
  boolean: only({ type: "boolean", description: "Yes or no" }),
  array: only({ type: "array", items: { type: "string" }, minItems: 1, maxItems: 3, uniqueItems: true }),
  object: only({ type: "object", properties: { key: { type: "string" } } }),
  enum: only({ type: "string", enum: ["celsius", "fahrenheit"], default: "celsius" }),
  optional: {
    type: "object",
    properties: { location: { type: "string", description: "City name" }, units: { type: "string" } },
    required: ["location"],
  },
  nested: only({
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
    required: ["name"],
    additionalProperties: false,
  }),
  rows: only({
    type: "array",
    items: { type: "object", properties: { id: { type: "string" }, value: { type: "number" } } },
  }),
  either: only({ anyOf: [{ type: "string" }, { type: "null" }], description: "Perhaps a text" }),
  referring: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { pair: { $ref: "#/$defs/pair" } },
    $defs: { pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] } },
    additionalProperties: false,
  },
  anything: only({ description: "Whatever it is" }),
};

const EMPTY = { type: "object", properties: {} };

const CHANGED = {
  unknown_type: [only({ type: "colour", description: "Red, perhaps" }), only({ description: "Red, perhaps" })],
  no_schema: [only(7), only({})],
  array_root: [{ type: "array", items: { type: "string" } }, EMPTY],
  string_root: [{ type: "string" }, EMPTY],
  untyped_root: [{ properties: { a: { type: "string" } } }, { type: "object", properties: { a: { type: "string" } } }],
};

// A row for each tool: its name, the schema from its server, and the expected schema for the model.
export const SCHEMAS = [
  ...Object.entries(UNCHANGED).map(([name, schema]) => ({ name, given: schema, arrives: schema })),
  ...Object.entries(CHANGED).map(([name, [given, arrives]]) => ({ name, given, arrives })),
];
