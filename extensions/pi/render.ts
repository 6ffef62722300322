// Calls and results in Pi's terminal: one line each, and in full when expanded.

import { stripVTControlCharacters } from "node:util";

import type { Json } from "./link.ts";

/** A component of Pi's terminal UI. */
type Component = { render(width: number): string[]; invalidate(): void };

export function renderCall(tool: Json, args: Json = {}, theme: any, context: any): Component {
  const ours = tool.name === "mcp";
  const name = plain(ours ? tool.name : (tool.title ?? tool.name));
  return lines((width) => {
    const title = cut(name, width);
    const coloured = theme.fg("toolTitle", theme.bold(title));
    if (context?.expanded) return [coloured, ...wrapped(JSON.stringify(args, null, 2), width)];
    const words = cut(` ${ours ? mode(args) : JSON.stringify(args)}`, width - columns(title));
    return [coloured + theme.fg("muted", words)];
  });
}

export function renderResult(result: any, how: any, theme: any, { lines: shown = 1 }: Json): Component {
  const blocks = (result.content ?? []).map((block: Json) => block.text ?? `[${block.type}: ${block.mimeType}]`);
  const colour = how.isPartial ? "warning" : result.isError || result.details?.errorType ? "error" : "toolOutput";
  const rows = plain(blocks.join("\n")).split("\n");
  const hint = rows.length > shown ? ` … ${rows.length - shown} more lines (ctrl+o)` : "";
  return lines((width) => {
    if (how.expanded) return wrapped(rows.join("\n"), width).map((row) => theme.fg(colour, row));
    return rows.slice(0, shown).map((row, index) => {
      const tail = index === shown - 1 ? cut(hint, width) : "";
      return theme.fg(colour, cut(row, width - columns(tail))) + theme.fg("dim", tail);
    });
  });
}

/** The arguments of `mcp` as one line, such as the tool and its arguments. */
function mode({ tool, args, ...rest }: Json): string {
  const others = Object.keys(rest).length > 0 ? JSON.stringify(rest) : "";
  if (tool === undefined) return others || "status";
  return [tool, args && (typeof args === "string" ? args : JSON.stringify(args)), others].filter(Boolean).join(" ");
}

/** A component that caches its rows for one width. */
function lines(draw: (width: number) => string[]): Component {
  let drawn: { width: number; rows: string[] } | undefined;
  const render = (width: number) => (drawn?.width === width ? drawn : (drawn = { width, rows: draw(width) })).rows;
  return { render, invalidate: () => (drawn = undefined) };
}

/** Text of servers without control characters and escape sequences. */
export function plain(text: string): string {
  const visible = stripVTControlCharacters(text).replaceAll("\t", "  ");
  return visible.replace(/[\p{Cc}\p{Bidi_Control}]/gu, (c) => (c === "\n" ? c : "\ufffd"));
}

/** The mark at the end of a text that was cut. */
export const CUT = "(not all of it fits)";
/** Cuts the text of a dialog so that its choices stay visible; a cut text must not be approved. */
export function fitting(text: string, mode: string): string {
  const { rows, columns } = mode === "tui" ? process.stdout : { rows: 400, columns: 400 };
  const [lines, room] = [wrapped(text, (columns ?? 80) - 6), Math.max((rows ?? 24) - 14, 4)];
  return lines.length > room ? [...lines.slice(0, room), CUT].join("\n") : plain(text);
}

/** An upper bound of the columns: a line wider than the terminal would break the layout. */
function columns(text: string): number {
  let sum = 0;
  for (const c of text) sum += c < "\u0300" ? 1 : 2;
  return sum;
}

/** One line of at most `room` columns; a cut line ends with `…`. */
function cut(text: string, room: number): string {
  const line = plain(text).replaceAll("\n", " ");
  if (columns(line) <= room) return line;
  return room < 2 ? "" : `${wrapped(line.slice(0, room), room - 1)[0]}…`;
}

function wrapped(text: string, room: number): string[] {
  const rows = [""];
  let left = room;
  for (const c of plain(text)) {
    left -= columns(c);
    if (c === "\n" || left < 0) {
      rows.push("");
      left = room - (c === "\n" ? 0 : columns(c));
    }
    if (c !== "\n") rows[rows.length - 1] += c;
  }
  return rows;
}
