// The server through the TypeScript SDK: every tool is listed and called, progress arrives, a running review can be
// cancelled, and garbage in between does no harm.
//
//     node mcp_client.mjs BINARY REPOSITORY SLOW
//
// SLOW is a repository whose policy asks a model that never answers. The SDK checks each structured answer against the
// schema that the server gave for it.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [binary, repository, slow] = process.argv.slice(2);
const TOOLS = [
  "apply_finding", "claude_health", "claude_judge_review", "claude_resolve_conflict", "claude_security_audit",
  "claude_validate_proposal", "get_review_history", "mark_review_complete", "plan_fix", "propose_disposition", "request_review",
  "review_branch", "review_code", "review_commit", "review_plan", "review_staged", "review_unstaged",
  "submit_findings", "verify_fix",
];

async function connect(root) {
  const transport = new StdioClientTransport({
    command: binary, args: ["serve-mcp", "--root", root], cwd: root, stderr: "inherit",
  });
  const client = new Client({ name: "third-party-test", version: "1" });
  await client.connect(transport);
  return [client, transport];
}

const [client, transport] = await connect(repository);
assert.equal(client.getServerVersion().name, "claude-reviewer");
assert.match(client.getInstructions(), /request_review/);
const { tools } = await client.listTools();
assert.deepEqual(tools.map((t) => t.name).sort(), TOOLS);
for (const tool of tools) {
  assert.ok(tool.title && tool.description && tool.inputSchema && tool.outputSchema && tool.annotations, tool.name);
}

async function call(name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.ok(result.content.length > 0, name);
  assert.ok(result.structuredContent, `${name}: ${JSON.stringify(result)}`);
  return result;
}

const progress = [];
const first = await call("request_review", { summary: "A division.", focus_areas: ["bugs", "empty lists"] },
  { onprogress: (p) => progress.push(p.progress), resetTimeoutOnProgress: true });
assert.notEqual(first.isError, true);
assert.equal(first.structuredContent.outcome, "reviewed");
assert.equal(first.structuredContent.round, 1);
assert.ok(progress.length > 0, "no progress was told");
assert.deepEqual(progress, [...progress].sort((a, b) => a - b), "progress went back");
const id = first.structuredContent.review_id;
assert.match(id, /^\d{4}-\d\d-\d\d-\d{3,}$/);

transport._process.stdin.write("garbage that is no JSON\n{\"jsonrpc\": \"2.0\", \"method\": \n\n");
const second = await call("request_review",
  { summary: "Nothing was changed.", previous_review_id: id, response: { explanations: ["F1: it is meant so"] } });
assert.equal(second.structuredContent.round, 2);
assert.equal(second.structuredContent.since.round, 1);
const history = await call("get_review_history", {});
assert.equal(history.structuredContent.sessions[0].review_id, id);
await call("get_review_history", { review_id: id });
const refused = await client.callTool({ name: "mark_review_complete", arguments: { review_id: id, final_status: "approved" } });
assert.equal(refused.isError, true, "approved with open findings");
await call("mark_review_complete", { review_id: id, final_status: "abandoned", notes: "A test." });

for (const [name, args] of [
  ["review_code", { code: "import os\nos.system(input())\n", language: "python", review_depth: "quick" }],
  ["review_staged", { repository_path: repository, focus_areas: ["security"] }],
  ["review_unstaged", { repository_path: repository }],
  ["review_commit", { commit_sha: "HEAD" }],
  ["review_branch", { branch: "HEAD", base_branch: "main" }],
]) {
  const { structuredContent: report, isError } = await call(name, args);
  assert.notEqual(isError, true, `${name}: ${JSON.stringify(report)}`);
  assert.ok(report.verdict && report.metadata.source_type && "provider" in report, name);
}
const judged = await call("claude_judge_review", { contract_path: "_handoff/TASK_CONTRACT.json", timeout_seconds: 60 });
assert.ok(["PASS", "CONDITIONAL", "FAIL", "CRITICAL_HALT"].includes(judged.structuredContent.verdict), JSON.stringify(judged));
await call("claude_validate_proposal", { proposal_path: "PROPOSAL_FINAL.md" });
await call("claude_security_audit", { files: ["price.py"], working_directory: repository });
await call("claude_resolve_conflict", {
  contract_path: "_handoff/TASK_CONTRACT.json", rebuttal_path: "REBUTTAL.md", judge_report_path: "_handoff/JUDGE_REPORT.json",
});
const health = await call("claude_health", {});
assert.equal(typeof health.structuredContent.available, "boolean");

const { prompts } = await client.listPrompts();
assert.deepEqual(prompts.map((p) => p.name), ["review"]);
await client.getPrompt({ name: "review", arguments: {} });
const { resources } = await client.listResources();
assert.ok(resources.some((r) => r.uri === "review://latest"));
const read = await client.readResource({ uri: "review://latest" });
assert.equal(JSON.parse(read.contents[0].text).review_id, id);
await client.close();

// --- a review that would take for ever is cancelled, and the server goes on
const [other] = await connect(slow);
const abort = new AbortController();
const running = other.callTool({ name: "request_review", arguments: { summary: "Slow." } }, undefined, { signal: abort.signal });
setTimeout(() => abort.abort("enough"), 1500);
await assert.rejects(running);
const after = await other.callTool({ name: "claude_health", arguments: {} });
assert.ok(after.structuredContent);
await other.close();
console.log(`${tools.length} tools, ${progress.length} words of progress`);
