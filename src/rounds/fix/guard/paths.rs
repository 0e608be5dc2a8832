//! Paths of what checks the code, by class.

use crate::diff::RepoPath;

/// Files and folders of one class, in lower case.
struct Class {
    /// Follows "is".
    name: &'static str,
    /// Names of files or folders, anywhere in a path.
    parts: &'static [&'static str],
    /// Names of files.
    files: &'static [&'static str],
    /// First letters of the name of a file.
    starts: &'static [&'static str],
    /// Last letters of the name of a file.
    ends: &'static [&'static str],
}

static CLASSES: &[Class] = &[
    Class {
        name: "policy of the review or a decision on findings",
        parts: &[".reviews"],
        files: &[],
        starts: &[".claude-reviewer"],
        ends: &[],
    },
    Class {
        name: "a hook",
        parts: &[".husky", ".githooks", ".git-hooks", "git-hooks", "githooks", "lefthook", ".lefthook"],
        files: &[
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            ".pre-commit-hooks.yaml",
            ".overcommit.yml",
            "prek.toml",
            "pre-commit",
            "pre-push",
            "commit-msg",
            "prepare-commit-msg",
            "post-checkout",
            "post-commit",
            "post-merge",
            "post-rewrite",
            "pre-receive",
            "post-receive",
            "pre-rebase",
        ],
        starts: &["lefthook.", ".lefthook.", ".huskyrc", "husky.config.", ".lintstagedrc", "lint-staged.config.", "commitlint.config.", ".commitlintrc"],
        ends: &[],
    },
    Class {
        name: "a CI file",
        parts: &[
            ".github", ".gitlab", ".circleci", ".buildkite", ".azure-pipelines", ".azuredevops", ".drone", ".woodpecker",
            ".forgejo", ".gitea", ".teamcity", ".semaphore", ".tekton", ".ci", ".harness", ".concourse",
        ],
        files: &[
            "action.yml", "action.yaml", "wercker.yml", "earthfile", "codecov.yml", ".codecov.yml", "codecov.yaml",
            "sonar-project.properties", ".sonarcloud.properties", "renovate.json", "dependabot.yml", ".mergify.yml",
            "netlify.toml", "vercel.json", "codefresh.yml", "bitrise.yml", "shippable.yml", "tox-ci.ini",
        ],
        starts: &[
            ".gitlab-ci", "gitlab-ci", "jenkinsfile", ".travis", "azure-pipelines", "bitbucket-pipelines", ".drone",
            ".woodpecker", "appveyor", ".appveyor", "cloudbuild", "buildspec", ".cirrus", "circle.", "pipeline.y",
        ],
        ends: &[".jenkinsfile", "-pipeline.yml", "-pipeline.yaml", ".gitlab-ci.yml"],
    },
    Class {
        name: "a file of git or of its host",
        parts: &[".git"],
        files: &["codeowners"],
        starts: &[".git"],
        ends: &[],
    },
    Class {
        name: "an instruction or a setting of a coding agent",
        parts: &[
            ".claude", ".claude-plugin", ".agents", ".codex", ".cursor", ".continue", ".gemini", ".windsurf", ".roo", ".kiro",
            ".junie", ".amazonq", ".augment", ".opencode", ".aider",
        ],
        files: &[
            "claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md", ".mcp.json", ".cursorrules",
            ".windsurfrules", ".clinerules", ".goosehints", "copilot-instructions.md", "opencode.json", ".roorules",
        ],
        starts: &[".aider"],
        ends: &[],
    },
    Class {
        name: "a configuration of tests",
        parts: &["__snapshots__", "__mocks__", ".nextest", "testdata", "golden", "goldens", "snapshots"],
        files: &[
            "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "tox.toml", ".coveragerc", "nose.cfg", ".noserc",
            "nextest.toml", ".nycrc", "nyc.config.js", ".rspec", "spec_helper.rb", "rails_helper.rb", "test_helper.rb",
            "test_helper.exs", "testng.xml", "junit-platform.properties", "xunit.runner.json", ".runsettings", "sitecustomize.py",
            "usercustomize.py", "karma.conf.js", "protractor.conf.js", "wdio.conf.js", "wdio.conf.ts", "setuptests.js",
            "setuptests.ts", "test-setup.js", "test-setup.ts", "setup-tests.js", "setup-tests.ts", "tarpaulin.toml", ".tarpaulin.toml",
            "behat.yml", "codeception.yml", "cucumber.yml", ".simplecov", "bunfig.toml",
        ],
        starts: &[
            "jest.config", "jest.setup", "jest-setup", "vitest.config", "vitest.workspace", "vitest.setup", "cypress.config",
            "cypress.json", "playwright.config", ".mocharc", "mocha.opts", "ava.config", "karma.conf", "phpunit.xml", "phpunit.dist",
            "phpspec.yml", "pest.php", "stryker.conf", ".c8rc", ".nycrc", "nyc.config", "web-test-runner.config", "testcafe", ".testcaferc",
            "cucumber.js", "detox.config",
        ],
        ends: &[".snap", ".snap.new", ".golden", ".runsettings", ".approved.txt"],
    },
    Class {
        name: "a configuration of a linter or a checker",
        parts: &[".semgrep", ".codeql", ".snyk", ".bandit"],
        files: &[
            ".flake8", ".pylintrc", "pylintrc", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", "pyrightconfig.json", "clippy.toml",
            ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "deny.toml", "cargo-deny.toml", "audit.toml", ".bandit", "bandit.yaml", "bandit.yml", ".semgrepignore",
            ".semgrep.yml", ".trivyignore", ".gitleaks.toml", ".gitleaksignore", ".secrets.baseline", ".snyk", ".hadolint.yaml",
            ".hadolint.yml", ".shellcheckrc", ".yamllint", ".yamllint.yml", ".yamllint.yaml", ".editorconfig", "biome.json",
            "biome.jsonc", "tslint.json", ".jshintrc", ".jscsrc", "phpcs.xml", "phpcs.xml.dist", "phpstan.neon", "phpstan.neon.dist",
            "psalm.xml", "detekt.yml", "checkstyle.xml", "spotbugs-exclude.xml", "pmd.xml", ".swiftlint.yml", ".credo.exs",
            ".checkov.yml", ".checkov.yaml", ".tflint.hcl", "dangerfile", ".clang-tidy", ".cppcheck", "setup.cfg", "typos.toml",
            ".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", ".pypirc", "knip.json", ".oxlintrc.json", "sonarlint.json",
        ],
        starts: &[
            ".eslintrc", "eslint.config", ".eslintignore", ".prettierrc", "prettier.config", ".prettierignore", ".stylelintrc",
            "stylelint.config", ".golangci", ".rubocop", "tsconfig", ".markdownlint", "dangerfile.", ".dependency-cruiser", "psalm-baseline", "phpstan-baseline",
        ],
        ends: &[".ruleset"],
    },
    Class {
        name: "a build script",
        parts: &[".cargo", ".mvn", "buildsrc", "build-logic", ".bazelci", ".devcontainer"],
        files: &[
            "build.rs", "setup.py", "makefile", "gnumakefile", "bsdmakefile", "cmakelists.txt", "meson.build", "meson_options.txt",
            "build", "build.bazel", "workspace", "workspace.bazel", "module.bazel", ".bazelrc", "build.xml", "pom.xml", "build.sbt",
            "gradlew", "gradlew.bat", "gradle.properties", "mvnw", "mvnw.cmd", "rakefile", "justfile", ".justfile", "configure",
            "configure.ac", "configure.in", "package.swift", "podfile", "gemfile", "mix.exs", "rebar.config", "noxfile.py", "fabfile.py",
            "dodo.py", "sconstruct", "sconscript", "wscript", "flake.nix", "default.nix", "shell.nix", "vagrantfile", "procfile",
            "project.clj", "deps.edn", "build.clj", "build.zig", "build.zig.zon", "dune-project", "premake5.lua", "magefile.go", "build.cake",
            "rust-toolchain", "rust-toolchain.toml", "manifest.in", "hatch_build.py", "pants.toml", "buck", "buck2", ".buckconfig", "tiltfile",
            "skaffold.yaml", "fastfile", "appfile", "nx.json", "turbo.json", "lerna.json", "wscript_build", "xmake.lua", "build.sh", "make.bat", "build.py", "build.ps1", "build.cmd", "build.bat", "build.js", "build.mjs", "build.ts",
        ],
        starts: &[
            "dockerfile", "containerfile", "docker-compose", "compose.y", "docker-bake", "taskfile", "gulpfile", "gruntfile",
            "webpack.", "rollup.config", "vite.config", "esbuild", "babel.config", ".babelrc", "metro.config", "next.config",
            "nuxt.config", "svelte.config", "astro.config", "rspack.config", "tsup.config", "postcss.config", "makefile.", "build.gradle", "settings.gradle", "conanfile", "vcpkg",
        ],
        ends: &[
            ".dockerfile", ".mk", ".mak", ".cmake", ".bzl", ".gradle", ".gradle.kts", ".gemspec", ".podspec", ".csproj", ".fsproj",
            ".vbproj", ".vcxproj", ".targets", ".props", ".sln", ".pbxproj", ".rake", ".sbt", ".cabal", ".ninja",
        ],
    },
];

/// Returns the class of a path, to follow "is"; `None`: a fix may change it.
pub(super) fn class(path: &RepoPath, of_policy: &[String]) -> Option<&'static str> {
    let path = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    let is_below = |entry: &String| {
        let entry = entry.trim_start_matches("./").trim_end_matches('/').to_lowercase();
        // The name of a conventions file counts in every folder.
        let is_named = !entry.contains('/') && path.rsplit('/').next() == Some(entry.as_str());
        !entry.is_empty() && (path == entry || is_named || path.starts_with(&format!("{entry}/")))
    };
    if of_policy.iter().any(is_below) {
        return Some("named by the policy of the review");
    }
    if path.starts_with("ci/") {
        return Some("a CI file");
    }
    // A file of this name below the top is often one of a task queue.
    if path == "tasks.py" {
        return Some("a build script");
    }
    let name = path.rsplit('/').next().unwrap_or(&path);
    let is_in = |class: &&Class| {
        path.split('/').any(|part| class.parts.contains(&part))
            || class.files.contains(&name)
            || class.starts.iter().any(|start| name.starts_with(start))
            || class.ends.iter().any(|end| name.ends_with(end))
            || class.starts.contains(&".claude-reviewer") && path.split('/').any(|p| p.starts_with(".claude-reviewer"))
    };
    CLASSES.iter().find(is_in).map(|class| class.name)
}
