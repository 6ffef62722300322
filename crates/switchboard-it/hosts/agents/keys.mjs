// Key sequences of a terminal.

export const DOWN = "\x1b[B";
export const RIGHT = "\x1b[C";
export const ENTER = "\r";
