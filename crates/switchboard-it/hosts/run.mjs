// Runs the tests with real hosts. Usage: node run.mjs SWITCHBOARD PACKAGES HOST,… FILE…
//
// If possible, everything runs in a network namespace that has only 127.0.0.1.

import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const [switchboard, packages, names, ...files] = process.argv.slice(2);

const isIsolated = process.env.HOSTS_ISOLATED !== undefined;
const canIsolate = () => spawnSync("unshare", ["-n", "ip", "link", "set", "lo", "up"]).status === 0;

if (!isIsolated && canIsolate()) {
  const inside = ["-n", "sh", "-c", 'ip link set lo up && exec "$@"', "-", process.execPath, ...process.argv.slice(1)];
  const child = spawn("unshare", inside, { stdio: "inherit", env: { ...process.env, HOSTS_ISOLATED: "1" } });
  child.once("exit", (code) => { process.exitCode = code ?? 1; });
} else {
  if (!isIsolated) console.log("no network namespace (needs root): the hosts can reach the network");
  // Each file runs in a process of its own, which inherits these variables.
  process.env.HOSTS_SWITCHBOARD = switchboard;
  process.env.HOSTS_PACKAGES = packages;
  process.env.HOSTS_LOGS = join(packages, "logs");
  process.env.HOSTS_NAMES = names;
  run({ files, concurrency: 2, timeout: 600_000 })
    .on("test:fail", () => { process.exitCode = 1; })
    .compose(spec)
    .pipe(process.stdout);
}
