//! Tests of installing and removing shims in the folders of a repository.

use super::*;
use tempfile::TempDir;

/// The folders of a repository. No repository is needed, because this module never reads one.
struct Ground {
    temp: TempDir,
}

impl Ground {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        fs::create_dir_all(temp.path().join("repo/.git")).unwrap();
        Self { temp }
    }

    fn worktree(&self) -> PathBuf {
        self.temp.path().join("repo")
    }

    fn place(&self, dir: &str, configured: Option<ConfigScope>) -> HookPlace {
        let worktree = self.worktree();
        let hooks = HooksDir {
            path: worktree.join(dir),
            configured,
            inside: true,
        };
        HookPlace {
            hooks,
            common: worktree.join(".git"),
            worktree,
        }
    }

    fn default(&self) -> HookPlace {
        self.place(".git/hooks", None)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.worktree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.worktree().join(dir)).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn add(place: &HookPlace) -> Result<Vec<HookOutcome>> {
    install(place, &[Hook::PreCommit], Path::new("/opt/claude-reviewer"))
}

fn take(place: &HookPlace) -> Vec<HookOutcome> {
    uninstall(place, &[Hook::PreCommit]).unwrap()
}

#[test]
fn hok_01_installing_twice_changes_nothing() {
    let ground = Ground::new();
    let hook = ground.worktree().join(".git/hooks/pre-commit");
    assert_eq!(
        add(&ground.default()).unwrap(),
        [HookOutcome::Installed {
            hook: hook.clone(),
            kept: None
        }]
    );
    assert!(is_executable(&hook));
    assert_eq!(
        add(&ground.default()).unwrap(),
        [HookOutcome::Current { hook: hook.clone() }]
    );
    assert_eq!(
        take(&ground.default()),
        [HookOutcome::Removed {
            hook: hook.clone(),
            restored: false
        }]
    );
    assert_eq!(ground.list(".git/hooks"), [""; 0]);
    assert_eq!(take(&ground.default()), [HookOutcome::Absent { hook }]);
}

#[test]
fn hok_01_an_older_shim_is_replaced_and_what_it_chained_stays() {
    let ground = Ground::new();
    let hook = ground.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\n# claude-reviewer hook 0: old\nexit 1\n",
    );
    ground.write(".git/hooks/pre-commit.chained", "theirs");
    assert_eq!(
        add(&ground.default()).unwrap(),
        [HookOutcome::Replaced { hook: hook.clone() }]
    );
    assert_eq!(
        shim::version(&fs::read(&hook).unwrap()),
        Some(shim::VERSION)
    );
    assert_eq!(
        take(&ground.default()),
        [HookOutcome::Removed {
            hook: hook.clone(),
            restored: true
        }]
    );
    assert_eq!(fs::read_to_string(hook).unwrap(), "theirs");
}

#[test]
fn hok_01_a_newer_shim_is_left_alone() {
    let ground = Ground::new();
    let text = "#!/bin/sh\n# claude-reviewer hook 99: new\n";
    let hook = ground.write(".git/hooks/pre-commit", text);
    assert!(
        add(&ground.default())
            .unwrap_err()
            .message
            .contains("newer claude-reviewer (hook version 99)")
    );
    assert_eq!(fs::read_to_string(hook).unwrap(), text);
}

#[test]
fn hok_01_one_reason_against_one_hook_installs_neither() {
    let ground = Ground::new();
    ground.write(".git/hooks/pre-push/is-a-folder", "");
    let error = install(&ground.default(), &Hook::GATES, Path::new("/x")).unwrap_err();
    assert!(
        error.message.ends_with("pre-push is a folder, not a hook"),
        "{error}"
    );
    assert_eq!(ground.list(".git/hooks"), ["pre-push"]);
}

#[test]
fn hok_01_a_hook_that_replaced_the_shim_is_not_overwritten() {
    let ground = Ground::new();
    ground.write(".git/hooks/pre-commit", "second");
    ground.write(".git/hooks/pre-commit.chained", "first");
    assert!(
        add(&ground.default())
            .unwrap_err()
            .message
            .starts_with("both ")
    );
    assert_eq!(take(&ground.default()).len(), 1);
    assert_eq!(
        ground.list(".git/hooks"),
        ["pre-commit", "pre-commit.chained"]
    );
}

#[test]
fn hok_01_an_interrupted_installation_is_finished_by_the_next_one() {
    let ground = Ground::new();
    ground.write(".git/hooks/pre-commit.chained", "theirs");
    let hook = ground.worktree().join(".git/hooks/pre-commit");
    let kept = Some(suffixed(&hook, shim::CHAINED));
    assert_eq!(
        add(&ground.default()).unwrap(),
        [HookOutcome::Installed {
            hook: hook.clone(),
            kept
        }]
    );
    take(&ground.default());
    assert_eq!(fs::read_to_string(hook).unwrap(), "theirs");
}

#[cfg(unix)]
#[test]
fn hok_01_a_linked_hook_is_kept_as_a_link() {
    let ground = Ground::new();
    ground.write("scripts/check", "theirs");
    fs::create_dir_all(ground.worktree().join(".git/hooks")).unwrap();
    let hook = ground.worktree().join(".git/hooks/pre-commit");
    std::os::unix::fs::symlink("../../scripts/check", &hook).unwrap();
    add(&ground.default()).unwrap();
    assert!(fs::symlink_metadata(&hook).unwrap().is_file());
    take(&ground.default());
    assert_eq!(
        fs::read_link(hook).unwrap(),
        Path::new("../../scripts/check")
    );
    assert_eq!(
        fs::read_to_string(ground.worktree().join("scripts/check")).unwrap(),
        "theirs"
    );
}

#[test]
fn hok_01_a_dispatcher_is_not_renamed() {
    let ground = Ground::new();
    for text in [
        "run-parts $(basename \"$0\").d\n",
        "exec hooks.d/${0##*/}\n",
        "hook = File.basename($0)\n",
    ] {
        let hook = ground.write(".git/hooks/pre-commit", text);
        let error = add(&ground.default()).unwrap_err();
        assert!(error.message.contains("asks for its own name"), "{error}");
        assert_eq!(
            error.hints,
            ["add this line to it instead: claude-reviewer review --hook pre-commit"]
        );
        assert_eq!(fs::read_to_string(hook).unwrap(), text);
    }
    ground.write(
        ".git/hooks/pre-commit",
        "# was basename $0 once\ncd \"$(dirname \"$0\")\"\n",
    );
    assert!(add(&ground.default()).is_ok());
}

#[test]
fn hok_01_a_path_that_others_share_is_refused() {
    let ground = Ground::new();
    for scope in [
        ConfigScope::System,
        ConfigScope::Global,
        ConfigScope::Command,
    ] {
        let error = add(&ground.place(".git/hooks", Some(scope))).unwrap_err();
        assert!(error.message.starts_with("core.hooksPath is "), "{error}");
    }
    let mut outside = ground.place("../hooks", Some(ConfigScope::Local));
    outside.hooks.inside = false;
    assert!(
        add(&outside)
            .unwrap_err()
            .message
            .contains("outside of this repository")
    );
    assert!(!outside.hooks.path.exists());
}

#[test]
fn hok_01_a_shim_in_the_worktree_names_no_path_of_this_machine() {
    let ground = Ground::new();
    let place = ground.place(".githooks", Some(ConfigScope::Local));
    add(&place).unwrap();
    let shared = fs::read_to_string(place.hooks.path.join("pre-commit")).unwrap();
    assert!(shared.contains("\nbin=''\n"), "{shared}");
    add(&ground.default()).unwrap();
    let own = fs::read_to_string(ground.default().hooks.path.join("pre-commit")).unwrap();
    assert!(own.contains("\nbin='/opt/claude-reviewer'\n"), "{own}");
}

#[test]
fn hok_01_husky_is_told_how_to_run_the_review() {
    let ground = Ground::new();
    ground.write(".husky/_/h", "generated");
    let error = add(&ground.place(".husky/_", Some(ConfigScope::Local))).unwrap_err();
    assert_eq!(
        error.hints,
        ["let husky run it: echo 'claude-reviewer review --hook pre-commit' >> .husky/pre-commit"]
    );
    assert_eq!(ground.list(".husky/_"), ["h"]);
    // In a clone without an installation, husky would take over later.
    let error = add(&ground.default()).unwrap_err();
    assert!(
        error.hints[0].ends_with(">> .husky/pre-commit"),
        "{:?}",
        error.hints
    );
    assert!(
        error.hints[1].contains("git config --local core.hooksPath"),
        "{:?}",
        error.hints
    );
    assert!(add(&ground.place(".git/hooks", Some(ConfigScope::Local))).is_ok());
}

#[test]
fn hok_01_lefthook_is_told_how_to_run_the_review() {
    let ground = Ground::new();
    ground.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ncall_lefthook run \"pre-commit\" \"$@\"\n",
    );
    let error = add(&ground.default()).unwrap_err();
    assert!(
        error.message.starts_with("lefthook runs the hooks"),
        "{error}"
    );
    let ground = Ground::new();
    ground.write(".lefthook.toml", "");
    let error = install(&ground.default(), &[Hook::PrePush], Path::new("/x")).unwrap_err();
    assert!(
        error.hints[0].contains("'[pre-push.commands.claude-reviewer]' 'run = "),
        "{:?}",
        error.hints
    );
    assert!(
        error.hints[0].contains("use_stdin = true"),
        "{:?}",
        error.hints
    );
    let ground = Ground::new();
    ground.write("lefthook.yaml", "");
    let error = install(&ground.default(), &Hook::GATES, Path::new("/x")).unwrap_err();
    assert_eq!(
        error.hints,
        [
            "let lefthook run it; in lefthook.yaml, below pre-commit, commands, add: \
             claude-reviewer: { run: 'claude-reviewer review --hook pre-commit' }",
            "let lefthook run it; in lefthook.yaml, below pre-push, commands, add: \
             claude-reviewer: { run: 'claude-reviewer review --hook pre-push --hook-args {1} {2}', use_stdin: true }",
        ]
    );
}

#[test]
fn hok_01_the_shim_that_pre_commit_moved_below_itself_is_found_there() {
    let ground = Ground::new();
    add(&ground.default()).unwrap();
    let (top, legacy) = (".git/hooks/pre-commit", ".git/hooks/pre-commit.legacy");
    fs::rename(ground.worktree().join(top), ground.worktree().join(legacy)).unwrap();
    ground.write(top, "pre-commit's own");
    let hook = ground.worktree().join(legacy);
    assert_eq!(
        add(&ground.default()).unwrap(),
        [HookOutcome::Current { hook: hook.clone() }]
    );
    assert_eq!(
        take(&ground.default()),
        [HookOutcome::Removed {
            hook,
            restored: false
        }]
    );
    assert_eq!(ground.list(".git/hooks"), ["pre-commit"]);
}

#[test]
fn hok_01_removes_what_was_installed_before_the_folder_was_changed() {
    let ground = Ground::new();
    add(&ground.default()).unwrap();
    ground.write(".husky/_/h", "generated");
    let hook = ground.worktree().join(".git/hooks/pre-commit");
    let moved = ground.place(".husky/_", Some(ConfigScope::Local));
    assert_eq!(
        take(&moved),
        [HookOutcome::Removed {
            hook,
            restored: false
        }]
    );
}
