// Keys, as a terminal sends them.

export const DOWN = "\x1b[B";
export const RIGHT = "\x1b[C";
export const ENTER = "\r";
