// Where the program `switchboard` is.

import { accessSync, constants, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The first that is there: named by the user, of our own package, what installed us, in PATH. */
export function findProgram(env: NodeJS.ProcessEnv = process.env): string {
  const named = env.SWITCHBOARD_BIN;
  if (named) {
    if (isProgram(named)) return named;
    throw new Error(`Switchboard cannot start: SWITCHBOARD_BIN is \`${named}\`, which is no program that can be run`);
  }
  const folders = (env.PATH ?? "").split(delimiter).filter(isAbsolute);
  const places = [ofPackage(), ofInstaller(), ...folders.map((folder) => join(folder, "switchboard"))];
  const found = places.find((place) => place !== undefined && isProgram(place));
  if (found !== undefined) return found;
  const remedy = "install it, or set SWITCHBOARD_BIN to where it is";
  throw new Error(`Switchboard cannot start: no program \`switchboard\` is in PATH; ${remedy}`);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** npm installs the package of this platform beside ours. */
function ofPackage(): string | undefined {
  try {
    const require = createRequire(import.meta.url);
    const manifest = require.resolve(`@pi-switchboard/${process.platform}-${process.arch}/package.json`);
    return join(dirname(manifest), "bin", "switchboard");
  } catch {
    return undefined;
  }
}

/** `switchboard install pi` writes down which program it was. */
function ofInstaller(): string | undefined {
  try {
    const place = join(dirname(fileURLToPath(import.meta.url)), "binary.json");
    const { path } = JSON.parse(readFileSync(place, "utf8"));
    return typeof path === "string" ? path : undefined;
  } catch {
    return undefined;
  }
}
