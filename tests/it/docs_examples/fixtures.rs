//! The repositories that the examples of the documents run in.

mod ci;
mod fleet;
mod models;
mod remote;

use crate::support::Repo;
use std::any::Any;
use std::path::{Path, PathBuf};

/// The state that the commands of an example start from.
pub struct World {
    pub repo: Repo,
    /// Working directory of the commands: the worktree, unless a fixture sets another one.
    pub dir: PathBuf,
    pub env: Vec<(String, String)>,
    /// Texts of the output, such as the address of a server, with their replacements on pages.
    pub shown: Vec<(String, String)>,
    /// Servers that must outlive the commands.
    servers: Vec<Box<dyn Any + Send>>,
}

/// A fixture: its name on pages, and a function that makes it.
type Fixture = (&'static str, fn() -> World);

/// All fixtures that pages use.
pub const FIXTURES: &[Fixture] = &[
    ("clean-change", clean_change),
    ("sql-in-staged-change", sql_in_staged_change),
    ("yaml-in-staged-change", yaml_in_staged_change),
    ("eval-in-staged-change", eval_in_staged_change),
    ("installed-hooks", installed_hooks),
    ("existing-hook", existing_hook),
    ("husky", husky),
    ("policy", policy),
    ("policies-of-project-and-user", policies_of_project_and_user),
    ("invalid-policy", invalid_policy),
    ("untrusted-policy", untrusted_policy),
    ("untrusted-address", untrusted_address),
    ("older-configuration", older_configuration),
    ("stored-review", stored_review),
    ("damaged-review", damaged_review),
    ("team-rule", team_rule),
    ("failing-team-rule", failing_team_rule),
    ("invalid-team-rule", invalid_team_rule),
    (
        "call-that-a-team-rule-reports",
        call_that_a_team_rule_reports,
    ),
    ("change-that-removes-a-rule", change_that_removes_a_rule),
    ("structural-rule", structural_rule),
    ("invalid-structural-rule", invalid_structural_rule),
    (
        "call-that-a-structural-rule-reports",
        call_that_a_structural_rule_reports,
    ),
    ("branch-and-remote", remote::branch_and_remote),
    ("shallow-clone", remote::shallow_clone),
    ("pull-requests", remote::pull_requests),
    (
        "pull-request-with-findings",
        remote::pull_request_with_findings,
    ),
    ("receipt-of-a-signer", remote::receipt_of_a_signer),
    ("signed-branch", remote::signed_branch),
    ("signed-branch-in-ci", ci::signed_branch_in_ci),
    ("github-pull-request", ci::github_pull_request),
    ("gitlab-merge-request", ci::gitlab_merge_request),
    ("other-ci", ci::other_ci),
    ("local-model", models::local_model),
    ("local-model-finds-a-bug", models::local_model_finds_a_bug),
    ("fix-of-a-bug", models::fix_of_a_bug),
    ("local-model-fixes-a-bug", models::local_model_fixes_a_bug),
    ("tickets", models::tickets),
    ("offline-backend", models::offline_backend),
    ("fleet", fleet::fleet),
    ("several-repositories", fleet::several_repositories),
];

impl World {
    fn new(repo: Repo) -> Self {
        let dir = repo.path();
        Self {
            repo,
            dir,
            env: Vec::new(),
            shown: Vec::new(),
            servers: Vec::new(),
        }
    }

    /// Returns a folder that comes first in `PATH`, for replacements of programs.
    pub fn programs(&self) -> PathBuf {
        self.repo.outside().join("bin")
    }

    fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    fn with_shown(mut self, actual: impl Into<String>, shown: &str) -> Self {
        self.shown.push((actual.into(), shown.to_owned()));
        self
    }

    fn with_server(mut self, server: impl Any + Send) -> Self {
        self.servers.push(Box::new(server));
        self
    }

    fn in_dir(mut self, dir: PathBuf) -> Self {
        self.dir = dir;
        self
    }
}

/// Writes a file in the home folder.
fn write_home(repo: &Repo, path: &str, text: &str) {
    write(&repo.home().join(path), text);
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Creates Dana's repository with two files and one commit.
fn shop() -> Repo {
    let repo = Repo::new();
    write_home(
        &repo,
        ".gitconfig",
        "[user]\n\tname = Dana\n\temail = dana@example.com\n",
    );
    for folder in [
        "outside",
        "home/.config",
        "home/.local/share/bash-completion/completions",
    ] {
        std::fs::create_dir_all(repo.home().parent().unwrap().join(folder)).unwrap();
    }
    repo.stage(
        "app.py",
        "from flask import Flask, request\n\nfrom shop import db\n\napp = Flask(__name__)\n\n\n",
    );
    repo.stage("prices.py", "def net(price):\n    return price\n");
    repo.commit("Start the shop");
    repo
}

/// The index and the worktree each have a change without findings.
fn clean_change() -> World {
    let repo = shop();
    repo.stage(
        "greeting.py",
        "def greeting(name):\n    return f\"Hello, {name}\"\n",
    );
    repo.write("prices.py", "def net(price):\n    return round(price, 2)\n");
    World::new(repo)
}

/// The text of `app.py` after a change that adds a query.
const APP_WITH_SQL: &str = r#"from flask import Flask, request

from shop import db

app = Flask(__name__)


@app.get("/users")
def users():
    name = request.args["name"]
    return str(db.execute("SELECT * FROM users WHERE name = '" + name + "'").fetchall())
"#;

fn sql_in_staged_change() -> World {
    let repo = shop();
    repo.stage("app.py", APP_WITH_SQL);
    World::new(repo)
}

fn yaml_in_staged_change() -> World {
    let repo = Repo::new();
    write_home(
        &repo,
        ".gitconfig",
        "[user]\n\tname = Dana\n\temail = dana@example.com\n",
    );
    repo.stage("app.py", "import yaml\n").commit("Start");
    repo.stage(
        "app.py",
        "import yaml\nconfig = yaml.unsafe_load(open(\"config.yml\"))\n",
    );
    World::new(repo)
}

fn eval_in_staged_change() -> World {
    let repo = shop();
    let text =
        "from flask import request\n\n\ndef run():\n    return eval(request.args[\"expr\"])\n";
    repo.stage("calc.py", text);
    World::new(repo)
}

fn installed_hooks() -> World {
    let world = clean_change();
    world.repo.reviewer(&["install-hooks"]).run(0);
    world
}

fn existing_hook() -> World {
    let repo = shop();
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    make_executable(&repo.path().join(".git/hooks/pre-commit"));
    World::new(repo)
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn husky() -> World {
    let repo = shop();
    std::fs::create_dir(repo.path().join(".husky")).unwrap();
    World::new(repo)
}

const POLICY: &str = r#"version = 1
ignore = ["vendor/**", "**/*.generated.*"]
block_on = ["critical", "major"]
warn_on = ["minor"]
"#;

fn policy() -> World {
    let repo = shop();
    repo.stage(".claude-reviewer.toml", POLICY)
        .commit("Add a policy");
    World::new(repo)
}

fn policies_of_project_and_user() -> World {
    let world = policy();
    let text = "version = 1\n[review]\nmax_cost_usd = 0.25\njobs = 2\n";
    write_home(&world.repo, ".config/claude-reviewer/config.toml", text);
    world
}

fn invalid_policy() -> World {
    let repo = shop();
    repo.write(
        "draft.toml",
        "ignor = [\"vendor/**\"]\n[review]\ntimeout = 90\n",
    );
    World::new(repo)
}

fn untrusted_policy() -> World {
    let repo = shop();
    let text = r#"version = 1
[tests]
command = "make test"
run = true
[backend.gateway]
kind = "openai"
base_url = "https://llm.example.com/v1"
model = "reviewer-1"
api_key_env = "GATEWAY_KEY"
"#;
    repo.stage(".claude-reviewer.toml", text)
        .commit("Add a policy");
    World::new(repo)
}

fn untrusted_address() -> World {
    let repo = shop();
    let text = r#"version = 1
[backend.local]
kind = "openai"
base_url = "https://models.example.com/v1"
model = "m"
api_key_env = "K"
"#;
    repo.stage(".claude-reviewer.toml", text)
        .commit("Add a policy");
    World::new(repo)
}

fn older_configuration() -> World {
    let repo = shop();
    repo.write(
        ".claude-reviewer.json",
        "{\"ignored_files\": [\"vendor/**\"], \"test_command\": \"make test\"}\n",
    );
    World::new(repo)
}

/// One stored session of a change with a comment that only a stricter policy blocks.
fn stored_review() -> World {
    let repo = shop();
    repo.stage(
        "app.py",
        "from flask import Flask\n# TODO: read the name\napp = Flask(__name__)\n",
    );
    repo.write(
        "stricter.toml",
        "version = 1\nblock_on = [\"critical\", \"major\", \"minor\", \"suggestion\"]\n",
    );
    repo.review(&["staged"], 0);
    World::new(repo)
}

fn damaged_review() -> World {
    let world = stored_review();
    let sessions = world.repo.path().join(".reviews/sessions");
    let session = std::fs::read_dir(&sessions)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(session.join("request.json"), "{").unwrap();
    // The first command that reads a damaged session moves it aside.
    world.repo.reviewer(&["history"]).run(0);
    world
}

const TEAM_RULE: &str = r#"[[rule]]
id = "legacy-http-client"
title = "Call of the retired HTTP client"
category = "architecture"
severity = "major"
confidence = "high"
languages = ["python"]
place = "code"
literals = ["legacy_http"]
pattern = 'legacy_http\.(get|post)\('
message = "legacy_http has no timeouts and is no longer maintained"
suggestion = "Call http_client.get or http_client.post instead"

[[rule.sample]]
matches = true
path = "src/orders.py"
text = 'response = legacy_http.get(url)'

[[rule.sample]]
matches = false
path = "src/orders.py"
text = 'response = http_client.get(url)  # was legacy_http.get(url)'
"#;

const TEAM_RULE_FILE: &str = ".claude-reviewer/rules/team.toml";

fn with_team_rule(text: &str) -> Repo {
    let repo = shop();
    repo.stage(TEAM_RULE_FILE, text).commit("Add a rule");
    repo
}

/// A team rule in a history of more than twenty commits.
fn team_rule() -> World {
    let repo = with_team_rule(TEAM_RULE);
    for i in 0..20 {
        repo.stage("notes.txt", format!("{i}\n"))
            .commit("Take notes");
    }
    World::new(repo)
}

fn failing_team_rule() -> World {
    World::new(with_team_rule(&TEAM_RULE.replace("place = \"code\"\n", "")))
}

fn invalid_team_rule() -> World {
    World::new(with_team_rule(&TEAM_RULE.replace("place =", "plaec =")))
}

fn call_that_a_team_rule_reports() -> World {
    let repo = with_team_rule(TEAM_RULE);
    let before = "import legacy_http\n\n\ndef a(u):\n    return u\n";
    repo.stage("src/orders.py", before).commit("Add orders");
    repo.stage(
        "src/orders.py",
        format!("{before}def b(u):\n    return legacy_http.post(u)\n"),
    );
    World::new(repo)
}

/// Returns the rule on the page about structural rules, with its samples.
fn page_rule() -> String {
    let page = include_str!("../../../docs/structural-rules.md");
    let text = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    text.unwrap_or_default().to_owned()
}

const STRUCTURAL_FILE: &str = ".claude-reviewer/rules/request-without-timeout.yml";

fn with_structural_rule(text: &str) -> World {
    let repo = shop();
    repo.stage(STRUCTURAL_FILE, text).commit("Add a rule");
    World::new(repo)
}

fn structural_rule() -> World {
    with_structural_rule(&page_rule())
}

fn invalid_structural_rule() -> World {
    with_structural_rule(&page_rule().replace("kind: argument_list", "kind: arguments"))
}

fn call_that_a_structural_rule_reports() -> World {
    let world = structural_rule();
    let before = "import requests\n\n\ndef order(url, lines):\n    return lines\n";
    world
        .repo
        .stage("src/orders.py", before)
        .commit("Add orders");
    let call = "    return requests.post(\n        url,\n        json=lines,\n    )\n";
    world
        .repo
        .stage("src/orders.py", before.replace("    return lines\n", call));
    world.repo.reviewer(&["install-hooks"]).run(0);
    world
}

fn change_that_removes_a_rule() -> World {
    let repo = with_team_rule(&format!(
        "{TEAM_RULE}\n{}",
        TEAM_RULE.replace("legacy-http-client", "legacy-client")
    ));
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(
        TEAM_RULE_FILE,
        TEAM_RULE.replace("legacy-http-client", "legacy-client"),
    )
    .commit("Remove a rule");
    World::new(repo)
}
