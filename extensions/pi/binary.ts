// Where the program `switchboard` is.

import { accessSync, constants, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The first that is there: named by the user, of our own package, what installed us, in PATH. */
export function findProgram(env: NodeJS.ProcessEnv = process.env): string {
  const named = env.SWITCHBOARD_BIN;
  if (named && isProgram(named)) return named;
  const trouble = "Switchboard cannot start: ";
  if (named) throw new Error(`${trouble}SWITCHBOARD_BIN is \`${named}\`, which is no program that can be run`);
  const folders = (env.PATH ?? "").split(delimiter).filter(isAbsolute);
  const places = [tried(ofPackage), tried(ofInstaller), ...folders.map((folder) => join(folder, "switchboard"))];
  const found = places.find((place) => typeof place === "string" && isProgram(place));
  if (found !== undefined) return found;
  throw new Error(`${trouble}no program \`switchboard\` is in PATH; install it, or name it in SWITCHBOARD_BIN`);
}

function isProgram(path: string): boolean {
  return tried(() => accessSync(path, constants.X_OK) ?? true) === true;
}

/** npm installs the package of this platform beside ours. */
function ofPackage(): string {
  const { resolve } = createRequire(import.meta.url);
  return join(resolve(`@pi-switchboard/${process.platform}-${process.arch}/package.json`), "../bin/switchboard");
}

/** `switchboard install pi` writes down which program it was. */
function ofInstaller(): string {
  return JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "binary.json"), "utf8")).path;
}

export function tried<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
