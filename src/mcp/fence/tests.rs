//! Tests of the paths that a client may name.

use super::argument::MOST_OF_A_REVISION;
use super::*;
use std::os::unix::fs::symlink;

struct TestFolders {
    dir: tempfile::TempDir,
}

impl TestFolders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["in/a/b", "out", "in/.git"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("out/secret.md"), "x").unwrap();
        std::fs::write(dir.path().join("in/a/doc.md"), "x").unwrap();
        Self { dir }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    fn uri(&self, below: &str) -> String {
        format!("file://{}", self.path(below).display())
    }

    fn fence(&self) -> Fence {
        Fence::new(Some(&self.path("in")), &self.path(""), &Env::default()).unwrap()
    }
}

#[test]
fn mcp_06_a_path_stays_below_the_root() {
    let place = TestFolders::new();
    let fence = place.fence();
    symlink(place.path("out"), place.path("in/way")).unwrap();
    symlink(place.path("in/a"), place.path("in/inner")).unwrap();
    let absolute = place.path("in/a").display().to_string();
    for fine in ["a", "a/b", ".", "inner/b", absolute.as_str(), "./a/doc.md"] {
        assert!(fence.path(fine, fence.root()).is_ok(), "{fine}");
    }
    let outside = place.path("out").display().to_string();
    let long = "a/".repeat(600_000);
    let bad = [
        "",
        "/etc",
        "../out",
        "a/../../out",
        "a/..",
        "way",
        "way/secret.md",
        "~",
        "~root",
        "a\0b",
        "missing",
    ];
    for bad in bad.into_iter().chain([outside.as_str(), long.as_str()]) {
        let said = fence.path(bad, fence.root()).unwrap_err();
        assert!(said.message.len() < 300, "{}", said.message);
    }
    // Do not reveal whether a path outside the fence exists: both cases give the same error.
    let [existing, missing] = ["way/secret.md", "way/nothing.md"].map(|p| {
        fence
            .path(p, fence.root())
            .unwrap_err()
            .message
            .replace(p, "")
    });
    assert_eq!(existing, missing);
}

#[test]
fn a_document_is_a_small_regular_file_and_no_secret() {
    let place = TestFolders::new();
    let fence = place.fence();
    for (name, size) in [
        (".env", 1),
        (".env.production", 1),
        ("id_rsa", 1),
        ("large.md", MAX_DOCUMENT + 1),
        (".git/config", 1),
    ] {
        std::fs::write(place.path(&format!("in/{name}")), vec![b'x'; size]).unwrap();
    }
    symlink(place.path("in/.env"), place.path("in/plain.md")).unwrap();
    symlink("/proc/self/environ", place.path("in/environ.md")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("in/pipe.md"))
        .status();
    assert!(made.unwrap().success());
    assert!(fence.document("a/doc.md", fence.root()).is_ok());
    for (name, why) in [
        (".env", "secrets"),
        (".env.production", "secrets"),
        ("id_rsa", "secrets"),
        ("plain.md", "secrets"),
        ("large.md", "larger than"),
        (".git/config", "belongs to git"),
        ("environ.md", "is not below"),
        ("/proc/self/environ", "is not below"),
        ("pipe.md", "not a regular file"),
        ("a", "not a regular file"),
    ] {
        let said = fence.document(name, fence.root()).unwrap_err().message;
        assert!(said.contains(why), "{name}: {said}");
    }
}

#[test]
fn a_git_file_that_leads_out_counts_only_where_it_is_known_there() {
    let place = TestFolders::new();
    let fence = place.fence();
    let tree = place.path("in/tree");
    let admin = place.path("out/repo/.git/worktrees/tree");
    std::fs::create_dir_all(&tree).unwrap();
    std::fs::create_dir_all(&admin).unwrap();
    std::fs::write(tree.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
    assert!(fence.owned(&tree).is_none());
    std::fs::write(
        admin.join("gitdir"),
        format!("{}\n", place.path("in/other/.git").display()),
    )
    .unwrap();
    assert!(fence.owned(&tree).is_none());
    std::fs::write(
        admin.join("gitdir"),
        format!("{}\n", tree.join(".git").display()),
    )
    .unwrap();
    assert!(fence.owned(&tree).is_some());
    std::fs::write(
        tree.join(".git"),
        format!("gitdir: {}\n", place.path("out/repo/.git").display()),
    )
    .unwrap();
    assert!(fence.owned(&tree).is_none());
    std::fs::remove_file(tree.join(".git")).unwrap();
    symlink(place.path("out/repo/.git"), tree.join(".git")).unwrap();
    assert!(fence.owned(&tree).is_none());
}

fn git(dir: &Path, args: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@example.com", "-C"])
        .arg(dir)
        .args(args);
    assert!(git.status().unwrap().success(), "{args:?}");
}

/// Creates two repositories with one commit each: `in/plain` and `out/theirs`.
fn with_repositories() -> (TestFolders, Fence, PathBuf) {
    let place = TestFolders::new();
    std::fs::remove_dir(place.path("in/.git")).unwrap();
    for name in ["in/plain", "out/theirs"] {
        git(&place.path(""), &["init", "-q", name]);
        git(
            &place.path(name),
            &["commit", "-q", "--allow-empty", "-m", "one"],
        );
    }
    let (fence, theirs) = (place.fence(), place.path("out/theirs/.git"));
    (place, fence, theirs)
}

fn refused(fence: &Fence, folder: &str) -> bool {
    match fence.repository(Some(folder), &Env::default()) {
        Ok(_) => false,
        Err(e) => {
            assert!(
                e.message.contains("leads out of the folder that is served"),
                "{}",
                e.message
            );
            true
        }
    }
}

#[test]
fn mcp_06_a_repository_borrows_nothing_from_outside() {
    type FolderPreparation = fn(&Path, &Path);
    let turns: [(&str, FolderPreparation); 10] = [
        ("alternates", |git, theirs| {
            std::fs::write(
                git.join("objects/info/alternates"),
                format!("{}/objects\n", theirs.display()),
            )
            .unwrap();
        }),
        ("relative alternates", |git, _| {
            let list = "../../../../out/theirs/.git/objects\n";
            std::fs::write(git.join("objects/info/alternates"), list).unwrap();
        }),
        ("alternates of alternates", |git, theirs| {
            std::fs::create_dir_all(git.join("more/info")).unwrap();
            std::fs::write(
                git.join("more/info/alternates"),
                format!("{}/objects", theirs.display()),
            )
            .unwrap();
            std::fs::write(git.join("objects/info/alternates"), "../more\n").unwrap();
        }),
        (
            "alternates of alternates that count from the first",
            |git, _| {
                std::fs::create_dir_all(git.join("a/b/c/d/info")).unwrap();
                // Resolved from the second folder, this path lies inside the fence; resolved
                // from the first, outside.
                std::fs::write(
                    git.join("a/b/c/d/info/alternates"),
                    "../../../../out/theirs/.git/objects\n",
                )
                .unwrap();
                std::fs::create_dir_all(git.join("out/theirs/.git/objects")).unwrap();
                std::fs::write(git.join("objects/info/alternates"), "../a/b/c/d\n").unwrap();
            },
        ),
        ("a quoted alternate", |git, _| {
            std::fs::write(git.join("objects/info/alternates"), "\"../objects\"\n").unwrap();
        }),
        ("a list too long to be read", |git, theirs| {
            let list = format!("{}{}/objects\n", "\n".repeat(2 * MOST), theirs.display());
            std::fs::write(git.join("objects/info/alternates"), list).unwrap();
        }),
        ("objects", |git, theirs| {
            std::fs::remove_dir_all(git.join("objects")).unwrap();
            symlink(theirs.join("objects"), git.join("objects")).unwrap();
        }),
        ("packs", |git, theirs| {
            std::fs::remove_dir_all(git.join("objects/pack")).unwrap();
            symlink(theirs.join("objects/pack"), git.join("objects/pack")).unwrap();
        }),
        ("common folder", |git, theirs| {
            std::fs::write(git.join("commondir"), format!("{}\n", theirs.display())).unwrap();
        }),
        ("references", |git, theirs| {
            std::fs::remove_dir_all(git.join("refs")).unwrap();
            symlink(theirs.join("refs"), git.join("refs")).unwrap();
        }),
    ];
    for (name, turn) in turns {
        let (place, fence, theirs) = with_repositories();
        assert!(!refused(&fence, "plain"), "{name}");
        turn(&place.path("in/plain/.git"), &theirs);
        assert!(refused(&fence, "plain"), "{name}");
        // A call without an argument has the same result.
        let own = Fence::new(
            Some(&place.path("in/plain")),
            &place.path(""),
            &Env::default(),
        )
        .unwrap();
        assert!(own.repository(None, &Env::default()).is_err(), "{name}");
    }
}

#[test]
fn a_bare_repository_below_a_worktree_is_not_the_one_that_was_looked_at() {
    let (place, fence, theirs) = with_repositories();
    git(&place.path("in/plain"), &["init", "-q", "--bare", "bare"]);
    let objects = place.path("in/plain/bare/objects");
    std::fs::write(
        objects.join("info/alternates"),
        format!("{}/objects\n", theirs.display()),
    )
    .unwrap();
    assert!(
        fence
            .repository(Some("plain/bare"), &Env::default())
            .is_err()
    );
}

#[test]
fn what_is_borrowed_inside_or_by_the_owner_of_a_linked_worktree_is_fine() {
    let (place, fence, theirs) = with_repositories();
    let inside = place.path("in");
    git(&inside, &["clone", "-q", "--shared", "plain", "shared"]);
    assert!(
        place
            .path("in/shared/.git/objects/info/alternates")
            .is_file()
    );
    assert!(!refused(&fence, "shared"));
    git(
        &place.path("in/plain"),
        &["worktree", "add", "-q", "../beside"],
    );
    assert!(!refused(&fence, "beside"));
    git(
        &place.path("out"),
        &["clone", "-q", "--shared", "theirs", "clone"],
    );
    let linked = place.path("in/linked").display().to_string();
    git(
        &place.path("out/clone"),
        &["worktree", "add", "-q", &linked],
    );
    assert!(!refused(&fence, "linked"));
    assert!(theirs.is_dir());
}

#[test]
fn mcp_07_only_a_revision_is_one() {
    for fine in [
        "HEAD",
        "HEAD~2",
        "HEAD^",
        "main@{upstream}",
        "feature/x",
        "v1.2",
        "1a2b3c4d",
        "größe",
    ] {
        assert!(revision("commit_sha", fine).is_ok(), "{fine}");
    }
    let long = "a".repeat(MOST_OF_A_REVISION + 1);
    for bad in [
        "",
        "--output=/x",
        "-p",
        "HEAD;id",
        "HEAD id",
        "$(id)",
        "a..b",
        "HEAD:f",
        "a\nb",
        "`id`",
        "a\0",
        &long,
    ] {
        assert!(revision("commit_sha", bad).is_err(), "{bad}");
    }
}

#[test]
fn roots_of_a_client_narrow_what_the_operator_named() {
    let place = TestFolders::new();
    let fence = place.fence();
    assert_eq!(
        roots(&fence, &[place.uri("in/a")]).unwrap(),
        [place.path("in/a")]
    );
    assert_eq!(roots(&fence, &[place.uri("")]).unwrap(), [place.path("in")]);
    assert_eq!(
        roots(&fence, &["file:///".to_owned()]).unwrap(),
        [place.path("in")]
    );
    assert!(roots(&fence, &[place.uri("out")]).is_err());
    assert_eq!(
        roots(&fence, &[place.uri("in/%61"), place.uri("in/a")]).unwrap(),
        [place.path("in/a")]
    );
    for nothing in [
        "https://example.com/x",
        "file://relative",
        "file:///no/such/folder",
        "file://%zz",
        "x",
    ] {
        assert!(roots(&fence, &[nothing.to_owned()]).is_err(), "{nothing}");
        let two = [nothing.to_owned(), place.uri("in/a")];
        assert_eq!(
            roots(&fence, &two).unwrap(),
            [place.path("in/a")],
            "{nothing}"
        );
    }
    assert!(roots(&fence, &[]).is_err());
}

/// Returns the served folders after a client named its folders.
fn roots(fence: &Fence, uris: &[String]) -> Result<Vec<PathBuf>> {
    fence.narrowed(uris).map(|f| f.roots)
}

#[test]
fn roots_of_a_client_never_widen_a_repository_that_was_found() {
    let place = TestFolders::new();
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .arg(place.path("in/a"))
        .status()
        .unwrap();
    assert!(git.success());
    let env = Env::from_pairs(
        place.path(""),
        [("HOME", place.path("out").into_os_string())],
    );
    let fence = Fence::new(None, &place.path("in/a/b"), &env).unwrap();
    assert_eq!(fence.roots, [place.path("in/a")]);
    for wide in ["file:///".to_owned(), place.uri(""), place.uri("in")] {
        assert_eq!(fence.narrowed(&[wide]).unwrap().roots, [place.path("in/a")]);
    }
    assert!(fence.narrowed(&[place.uri("out")]).is_err());
    assert_eq!(
        fence.narrowed(&[place.uri("in/a/b")]).unwrap().roots,
        [place.path("in/a/b")]
    );
}

#[test]
fn where_nothing_was_named_or_found_a_client_may_not_open_everything() {
    let place = TestFolders::new();
    std::fs::create_dir_all(place.path("home/me/project")).unwrap();
    let env = Env::from_pairs(
        place.path(""),
        [("HOME", place.path("home/me").into_os_string())],
    );
    let fence = Fence::new(None, &place.path("out"), &env).unwrap();
    assert_eq!(
        fence
            .narrowed(&[place.uri("home/me/project")])
            .unwrap()
            .roots,
        [place.path("home/me/project")]
    );
    for wide in [
        "file:///".to_owned(),
        place.uri(""),
        place.uri("home"),
        place.uri("home/me"),
    ] {
        assert!(
            fence.narrowed(std::slice::from_ref(&wide)).is_err(),
            "{wide}"
        );
        let both = [wide, place.uri("in/a")];
        assert_eq!(fence.narrowed(&both).unwrap().roots, [place.path("in/a")]);
    }
}
