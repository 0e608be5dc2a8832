#!/usr/bin/env node
// Starts the binary of the package for this platform, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

// `ci/release/npm` puts the scope in.
const name = `SCOPE/cli-${process.platform}-${process.arch}`;

function binary() {
  try {
    return require.resolve(`${name}/bin/claude-reviewer`);
  } catch {
    console.error(`error: package ${name} not found`);
    console.error("hint: reinstall with optional dependencies: npm install --include=optional");
    console.error("hint: if there is no package for this platform, build from source");
    process.exit(2);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });

// The binary decides how a signal ends it. Node must not end before the binary does.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`error: cannot run ${child.spawnfile}: ${error.message}`);
  process.exit(2);
});

child.on("exit", (code, signal) => {
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});
