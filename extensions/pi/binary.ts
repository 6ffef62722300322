// Finds the program `switchboard`.

import { accessSync, constants, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The path of the program: from SWITCHBOARD_BIN, the npm package, the installing program or PATH, in this order. */
export function findProgram(env: NodeJS.ProcessEnv = process.env): string {
  const named = env.SWITCHBOARD_BIN;
  if (named && isProgram(named)) return named;
  const trouble = "Switchboard cannot start: ";
  if (named) throw new Error(`${trouble}SWITCHBOARD_BIN is \`${named}\`, which is not an executable program`);
  const folders = (env.PATH ?? "").split(delimiter).filter(isAbsolute);
  const places = [tried(ofPackage), tried(ofInstaller), ...folders.map((folder) => join(folder, "switchboard"))];
  const found = places.find((place) => typeof place === "string" && isProgram(place));
  if (found !== undefined) return found;
  throw new Error(`${trouble}\`switchboard\` is not in PATH; install it, or set SWITCHBOARD_BIN to its path`);
}

function isProgram(path: string): boolean {
  return tried(() => accessSync(path, constants.X_OK) ?? true) === true;
}

/** The program in the npm package for this platform, which npm installs beside this package. */
function ofPackage(): string {
  const { resolve } = createRequire(import.meta.url);
  return join(resolve(`@pi-switchboard/${process.platform}-${process.arch}/package.json`), "../bin/switchboard");
}

/** The path of the program that ran `switchboard install pi`, which recorded it. */
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
