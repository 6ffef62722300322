// Unpacks Pi 1.5.0 beside this file. npm cannot install it, because the registry lacks some of its
// dependencies, but its own package bundles all of them.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = "@earendil-works/pi-coding-agent@1.5.0";
const SHA512 = "xNDZ5kqowO6Z03FS2gwAkPEGk1ssxVcYKQ6qZId84mFEvwACvvyc2l0vAMOS+c5zvxLRMLBE9r4y44IGYkMJaQ==";

const place = join(dirname(fileURLToPath(import.meta.url)), "pi-1.5.0");
rmSync(place, { recursive: true, force: true });
mkdirSync(place);

const stdio = ["ignore", "pipe", "inherit"];
const packed = execFileSync("npm", ["pack", "--silent", PACKAGE], { cwd: place, stdio, encoding: "utf8" });
const archive = join(place, packed.trim().split("\n").at(-1));
const found = createHash("sha512").update(readFileSync(archive)).digest("base64");
if (found !== SHA512) throw new Error(`${PACKAGE} does not match its pinned hash: sha512-${found}`);
execFileSync("python3", ["-m", "tarfile", "-e", archive, place]);
rmSync(archive);
