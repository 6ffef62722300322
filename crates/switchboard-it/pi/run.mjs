// Runs the tests with the real Pi. Usage: node run.mjs SWITCHBOARD EXTENSION ENDS FILE…, where ENDS is
// the number of sessions for each way of ending.

import { run } from "node:test";
import { spec } from "node:test/reporters";

const [switchboard, extension, ends, ...files] = process.argv.slice(2);

// Each file runs in a process of its own, which inherits these variables.
process.env.PI_TEST_SWITCHBOARD = switchboard;
process.env.PI_TEST_EXTENSION = extension;
process.env.PI_TEST_ENDS = ends;

run({ files, concurrency: 2, timeout: 240_000 })
  .on("test:fail", () => { process.exitCode = 1; })
  .compose(spec)
  .pipe(process.stdout);
