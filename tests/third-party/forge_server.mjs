// A GitHub server on loopback that holds every request against GitHub's own descriptions: paths, queries and bodies
// against its OpenAPI, questions against its GraphQL schema. It keeps what it is told, and serves the repository.
//
//     node forge_server.mjs NODE_MODULES BARE_REPOSITORY BASE TOKEN LOG
//
// A file LOG.reply holds a reply of a maintainer to every comment on lines.
//
// Prints its port. A line of LOG that begins with `+ ` is a request that changed something, any other one a complaint.
import { createRequire } from "node:module";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const [modules, bare, base, token, log] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const { default: Ajv } = require("ajv");
const formats = require("ajv-formats");
const graphql = createRequire(join(modules, "@octokit/graphql-schema/x.js"))("graphql");
const read = (path) => readFileSync(join(modules, path), "utf8");
const api = JSON.parse(read("@octokit/openapi/generated/api.github.com.deref.json"));
// The published schema names some fields twice.
const schema = graphql.buildSchema(read("@octokit/graphql-schema/schema.graphql"), { assumeValidSDL: true });
const ajv = new Ajv({ strict: false, allErrors: true });
(formats.default ?? formats)(ajv);

const note = (text) => appendFileSync(log, text + "\n");
const me = { login: "robot[bot]", id: 7, type: "Bot" };
const state = { inline: [], comments: [], statuses: [], resolved: new Set(), next: 100 };

// What the program reads of each answer must be described there.
const reads = {
    "GET /repos/{owner}/{repo}/pulls": ["number", "title", "html_url", "user.login", "draft", "base.ref", "head.ref",
        "updated_at"],
    "GET /repos/{owner}/{repo}/pulls/{pull_number}": ["number", "title", "body", "html_url", "user.login", "state",
        "merged", "draft", "commits", "base.ref", "base.sha", "base.repo.id", "base.repo.full_name", "head.ref",
        "head.sha", "head.repo.id", "head.repo.full_name"],
    "GET /repos/{owner}/{repo}/pulls/{pull_number}/commits": ["sha", "commit.message"],
    "GET /repos/{owner}/{repo}/pulls/{pull_number}/comments": ["id", "body", "user.id", "user.login",
        "path", "line", "start_line", "side"],
    "GET /repos/{owner}/{repo}/issues/{issue_number}/comments": ["id", "body", "user.id", "user.login"],
    "GET /repos/{owner}/{repo}/activity": ["ref", "after", "timestamp"],
    "GET /repos/{owner}/{repo}/collaborators/{username}/permission": ["role_name", "user.id"],
    "GET /repos/{owner}/{repo}/commits/{ref}/statuses": ["state", "context", "description", "creator.id",
        "creator.login"],
};

function operation(method, path) {
    const parts = path.split("/");
    const fits = (template) => {
        const t = template.split("/");
        return t.length === parts.length && t.every((p, i) => p.startsWith("{") || p === parts[i]);
    };
    const fixed = (template) => template.split("/").filter((p) => !p.startsWith("{")).length;
    const template = Object.keys(api.paths).filter(fits).sort((a, b) => fixed(b) - fixed(a))[0];
    return { template, described: template && api.paths[template][method.toLowerCase()] };
}

function describes(schema, path) {
    if (path.length === 0) return true;
    if (!schema) return false;
    if (schema.items) return describes(schema.items, path);
    const [name, ...rest] = path;
    if (schema.properties?.[name] && describes(schema.properties[name], rest)) return true;
    const choices = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
    return choices.some((s) => describes(s, path));
}

function check(method, path, query, body) {
    const { template, described } = operation(method, path);
    const name = `${method} ${template ?? path}`;
    if (!described) return note(`${name}: not described`);
    const known = new Map((described.parameters ?? []).filter((p) => p.in === "query").map((p) => [p.name, p.schema]));
    for (const [key, value] of query) {
        const of = known.get(key);
        if (!of) note(`${name}: no query ${key}`);
        else if (!ajv.validate(of, of.type === "integer" ? Number(value) : value))
            note(`${name}: query ${key}: ${ajv.errorsText()}`);
    }
    const wanted = described.requestBody?.content?.["application/json"]?.schema;
    if (wanted && !ajv.validate(wanted, body)) note(`${name}: ${ajv.errorsText()}: ${JSON.stringify(body)}`);
    const strange = (schema, value, at) => {
        if (Array.isArray(value)) return value.forEach((v, i) => strange(schema?.items, v, `${at}[${i}]`));
        if (value === null || typeof value !== "object" || !schema?.properties) return;
        for (const key of Object.keys(value)) {
            if (!schema.properties[key]) note(`${name}: ${at}.${key} is not described`);
            strange(schema.properties[key], value[key], `${at}.${key}`);
        }
    };
    strange(wanted, body, "body");
    const good = Object.keys(described.responses).find((code) => code.startsWith("2"));
    const answer = described.responses[good]?.content?.["application/json"]?.schema;
    for (const field of reads[name] ?? []) {
        if (!describes(answer, field.split("."))) note(`${name}: the answer has no ${field}`);
    }
}

const repo = { id: 1, full_name: "o/r" };
const head = () => readFileSync(join(bare, "refs/pull/12/head"), "utf8").trim();
const pull = () => ({
    number: 12, title: "Change the settings", body: "Because.", state: "open", merged: false, draft: false, commits: 1,
    html_url: "https://forge.example/o/r/pull/12", user: { login: "author", id: 3 },
    updated_at: "2024-01-01T00:00:00Z", base: { ref: "main", sha: base, repo },
    head: { ref: "feature", sha: head(), repo },
});

function question({ query, variables }) {
    const document = graphql.parse(query);
    for (const error of graphql.validate(schema, document)) note(`graphql: ${error.message}`);
    const asked = document.definitions[0].variableDefinitions ?? [];
    for (const error of graphql.getVariableValues(schema, asked, variables ?? {}).errors ?? [])
        note(`graphql: ${error.message}`);
    if (query.includes("viewer")) return { viewer: { login: me.login, databaseId: me.id } };
    const info = { hasNextPage: false, endCursor: null };
    if (query.includes("lastEditedAt")) {
        const actor = (kind, login, databaseId) => ({ __typename: kind, login, databaseId });
        const comment = (body, lastEditedAt, author) => ({
            body, url: "https://forge.example/c", createdAt: "2026-01-01T11:00:00Z", lastEditedAt, author,
        });
        const reply = existsSync(`${log}.reply`) ? readFileSync(`${log}.reply`, "utf8") : undefined;
        const thread = (c) => ({
            comments: {
                pageInfo: info,
                nodes: [comment(c.body, c.edited ?? null, actor("Bot", me.login, me.id))].concat(
                    reply ? [comment(reply, null, actor("User", "mara", 20))] : []),
            },
        });
        const reviewThreads = { pageInfo: info, nodes: state.inline.map(thread) };
        return { repository: { pullRequest: { reviewThreads } } };
    }
    if (query.includes("authors(")) {
        const user = { login: "author", databaseId: 3 };
        const commit = {
            oid: head(), authors: { pageInfo: info, nodes: [{ user }] }, committer: { email: "a@example.com", user },
        };
        const commits = { totalCount: 1, pageInfo: info, nodes: [{ commit }] };
        return { repository: { pullRequest: { author: user, commits } } };
    }
    if (query.includes("reviewThreads")) {
        const node = (c) => ({
            id: `T${c.id}`, isResolved: state.resolved.has(c.id), isOutdated: false,
            comments: { nodes: [{ databaseId: c.id }] },
        });
        const reviewThreads = { pageInfo: { hasNextPage: false, endCursor: null }, nodes: state.inline.map(node) };
        return { repository: { pullRequest: { reviewThreads } } };
    }
    state.resolved.add(Number(variables.id.slice(1)));
    note("+ resolve");
    return {};
}

function answer(method, rest, body) {
    const add = (list, comment) => list.push({ id: state.next++, user: me, ...comment });
    if (method !== "GET") note(`+ ${method} ${rest.join("/")}`);
    const name = rest.map((p) => (/^([0-9]+|[0-9a-f]{40})$/.test(p) ? "*" : p)).join("/");
    switch (`${method} ${name}`) {
        case "GET pulls": return [pull()];
        case "GET pulls/*": return pull();
        case "GET pulls/*/commits": return [{ sha: head(), commit: { message: "change" } }];
        case "GET pulls/*/comments": return state.inline;
        case "GET issues/*/comments": return state.comments;
        case "GET commits/*/statuses": return state.statuses;
        case "GET activity": return [{ ref: "refs/heads/feature", after: head(), timestamp: "2026-01-01T10:00:00Z" }];
        case "GET collaborators/mara/permission":
            return { permission: "write", role_name: "maintain", user: { login: "mara", id: 20 } };
        case "POST pulls/*/reviews": body.comments.forEach((c) => add(state.inline, c)); return {};
        case "POST issues/*/comments": add(state.comments, body); return {};
        case "POST statuses/*": state.statuses.unshift({ ...body, creator: me }); return {};
        case "PATCH pulls/comments/*":
        case "PATCH issues/comments/*": {
            const comment = [...state.inline, ...state.comments].find((c) => c.id === Number(rest[2]));
            return Object.assign(comment, body, { edited: "2026-01-01T12:00:00Z" });
        }
    }
    note(`${method} ${rest.join("/")}: unknown here`);
    return {};
}

createServer((request, response) => {
    const url = new URL(request.url, "http://x");
    if (url.pathname.startsWith("/o/r.git/")) {
        const file = join(bare, url.pathname.slice("/o/r.git/".length));
        const found = existsSync(file);
        response.writeHead(found ? 200 : 404);
        return response.end(found ? readFileSync(file) : "");
    }
    const chunks = [];
    request.on("data", (c) => chunks.push(c));
    request.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const body = text ? JSON.parse(text) : undefined;
        if (request.headers.authorization !== `Bearer ${token}`) note(`${url.pathname}: no token`);
        let out;
        if (url.pathname === "/api/graphql") {
            out = { data: question(body) };
        } else {
            const path = url.pathname.replace(/^\/api\/v3/, "");
            check(request.method, path, url.searchParams, body);
            out = answer(request.method, path.split("/").slice(4), body);
        }
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify(out));
    });
}).listen(0, "127.0.0.1", function () {
    console.log(this.address().port);
});
