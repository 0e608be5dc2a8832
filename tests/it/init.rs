//! Tests of `init`: the files that it writes, its questions, and the files that it does not change.

use crate::support::Repo;
use crate::terminal::typed;

const POLICY: &str = ".claude-reviewer.toml";
const WORKFLOW: &str = ".github/workflows/claude-reviewer.yml";

/// Creates a repository with files of two languages.
fn repo() -> Repo {
    let repo = Repo::new();
    repo.stage("app.py", "x = 1\n")
        .stage("lib/b.py", "x = 2\n")
        .stage("web/a.js", "let x = 1\n");
    repo.stage("pyproject.toml", "[project]\n")
        .stage("vendor/c.go", "package c\n");
    repo
}

fn read(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap_or_default()
}

#[test]
fn the_policy_names_what_it_found_is_valid_and_changes_no_review() {
    let repo = repo();
    let hash =
        |repo: &Repo| repo.review_json(&["staged", "--no-save"], 0)["policy"]["hash"].clone();
    let before = hash(&repo);
    let run = repo.reviewer(&["init"]).run(0);
    assert_eq!(
        run.stdout,
        format!("wrote {POLICY}\nnext: claude-reviewer review\n")
    );
    let text = read(&repo, POLICY);
    for part in [
        "found: python, javascript",
        "# ignore = [\"vendor/**\"]",
        "# command = \"python -m pytest\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    repo.reviewer(&["policy", "check"]).run(0);
    assert_eq!(hash(&repo), before);
    // The file with all of its suggestions enabled is valid too.
    let uncommented: String = text
        .lines()
        .map(|l| {
            l.strip_prefix("# ")
                .filter(|l| l.contains(" = ") || l.starts_with("[["))
                .unwrap_or(l)
                .to_owned()
                + "\n"
        })
        .collect();
    repo.write(POLICY, uncommented);
    let run = repo.reviewer(&["policy", "check"]).run(0);
    assert!(run.stdout.starts_with("ok: "), "{}", run.stdout);
}

#[test]
fn without_flags_and_without_a_terminal_only_the_policy_is_written() {
    for args in [&["init"][..], &["init", "--yes"]] {
        let repo = repo();
        repo.reviewer(args).run(0);
        assert!(!read(&repo, POLICY).is_empty() && read(&repo, WORKFLOW).is_empty());
        assert!(!repo.path().join(".git/hooks/pre-commit").exists());
    }
}

#[test]
fn flags_add_hooks_and_the_ci_file_of_a_platform() {
    for (name, path) in [
        ("github", WORKFLOW),
        ("gitlab", ".gitlab/claude-reviewer.yml"),
        ("bitbucket", "bitbucket-pipelines.yml"),
        ("azure", "azure-pipelines.yml"),
        ("jenkins", "Jenkinsfile"),
    ] {
        let repo = repo();
        let run = repo.reviewer(&["init", "--hooks", "--ci", name]).run(0);
        assert!(
            run.stdout.contains(&format!("wrote {path}\n")),
            "{}",
            run.stdout
        );
        assert!(
            run.stdout.contains("installed .git/hooks/pre-commit"),
            "{}",
            run.stdout
        );
        assert!(read(&repo, path).contains("claude-reviewer"), "{name}");
    }
}

#[test]
fn nothing_is_overwritten() {
    let repo = repo();
    repo.write(POLICY, "version = 1\n")
        .write(WORKFLOW, "mine\n");
    let run = repo.reviewer(&["init", "--ci", "github"]).run(2);
    assert!(
        run.stderr
            .contains(&format!("error: {WORKFLOW} already exists")),
        "{}",
        run.stderr
    );
    let run = repo.reviewer(&["init", "--hooks"]).run(0);
    assert!(
        run.stdout
            .starts_with(&format!("kept {POLICY}, which exists already\n")),
        "{}",
        run.stdout
    );
    assert!(repo.path().join(".git/hooks/pre-commit").exists());
    assert_eq!(
        (read(&repo, POLICY).as_str(), read(&repo, WORKFLOW).as_str()),
        ("version = 1\n", "mine\n")
    );
}

#[test]
fn no_link_leads_out_of_the_repository() {
    let repo = repo();
    std::fs::create_dir(repo.outside()).unwrap();
    std::os::unix::fs::symlink(repo.outside(), repo.path().join(".github")).unwrap();
    std::os::unix::fs::symlink(repo.outside().join("policy"), repo.path().join(POLICY)).unwrap();
    let run = repo.reviewer(&["init", "--ci", "github"]).run(2);
    assert!(
        run.stderr.contains(".github is not a directory"),
        "{}",
        run.stderr
    );
    assert_eq!(std::fs::read_dir(repo.outside()).unwrap().count(), 0);
}

#[test]
fn on_a_terminal_it_asks_and_takes_the_default_for_an_empty_line() {
    let repo = repo();
    repo.git(&["remote", "add", "origin", "https://gitlab.example/a/b.git"]);
    let (code, text) = typed(repo.reviewer(&["init"]), "\nnope\n\n");
    assert!(
        code == 0 && text.contains("Install git hooks") && text.contains("or none [gitlab]"),
        "{text}"
    );
    assert!(repo.path().join(".git/hooks/pre-push").exists(), "{text}");
    assert!(
        !read(&repo, ".gitlab/claude-reviewer.yml").is_empty(),
        "{text}"
    );

    let other = self::repo();
    let (code, text) = typed(other.reviewer(&["init"]), "n\nnone\n");
    assert!(
        code == 0 && !other.path().join(".git/hooks/pre-commit").exists(),
        "{text}"
    );
    assert!(!read(&other, POLICY).is_empty());
}

#[test]
fn outside_a_repository_it_says_so() {
    let repo = repo();
    std::fs::create_dir(repo.outside()).unwrap();
    let run = repo.reviewer(&["init"]).dir(repo.outside()).run(2);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    assert_eq!(std::fs::read_dir(repo.outside()).unwrap().count(), 0);
}

#[test]
fn a_folder_name_cannot_add_a_key_to_the_policy() {
    let repo = Repo::new();
    repo.stage("app.py", "x = 1\n").stage("vendor/a.js", "1\n");
    for folder in [
        "x\non_incomplete = \"warn\"\n#/vendor",
        "a\"b/vendor",
        "c[1]*/dist",
        "!d/dist",
    ] {
        repo.stage(&format!("{folder}/x.js"), "1\n");
    }
    repo.reviewer(&["init", "--yes"]).run(0);
    let text = read(&repo, POLICY);
    assert!(
        !text.contains("on_incomplete") && text.contains("\n# ignore = [\"vendor/**\"]\n"),
        "{text}"
    );
    repo.write(POLICY, text.replace("# ignore = ", "ignore = "));
    repo.reviewer(&["policy", "check"]).run(0);
}

#[test]
fn on_a_terminal_the_default_is_never_a_ci_file_that_exists() {
    for (name, file) in [
        ("jenkins", "Jenkinsfile"),
        ("azure", "azure-pipelines.yml"),
        ("bitbucket", "bitbucket-pipelines.yml"),
        ("github", WORKFLOW),
    ] {
        let repo = repo();
        repo.write(file, "mine\n");
        let (code, text) = typed(repo.reviewer(&["init"]), "n\n\n");
        assert!(
            code == 0 && text.contains("or none [none]"),
            "{name}: {text}"
        );
        assert!(
            !read(&repo, POLICY).is_empty() && read(&repo, file) == "mine\n",
            "{name}: {text}"
        );
    }
}

#[test]
fn what_is_written_before_an_error_is_reported_and_no_temporary_file_stays() {
    let repo = repo();
    repo.write(".github", "not a folder\n");
    let run = repo.reviewer(&["init", "--ci", "github"]).run(2);
    assert_eq!(run.stdout, format!("wrote {POLICY}\n"));
    assert!(
        run.stderr.contains(".github is not a directory"),
        "{}",
        run.stderr
    );
    let names = std::fs::read_dir(repo.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|n| n.contains("tmp")).count(), 0);
}
