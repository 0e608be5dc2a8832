//! How a verified fix is written: beside later edits, as a patch, with the line endings and modes of
//! the files.

use super::*;

#[test]
fn a_fix_keeps_later_edits_of_other_lines_and_refuses_others() {
    let top = Arc::new(Mutex::new(PathBuf::new()));
    let later = Arc::new(Mutex::new(String::new()));
    let (path, text) = (Arc::clone(&top), Arc::clone(&later));
    // The user edits the file while the model works.
    let also = move |r: &Request| {
        if r.prompt().contains("in the private copy") {
            std::fs::write(
                path.lock().unwrap().join("a.py"),
                text.lock().unwrap().as_bytes(),
            )
            .unwrap();
        }
        None
    };
    let case = Case::with(
        CODE,
        vec![vec![edit("a.py", BAD, GOOD)]],
        "",
        Box::new(also),
    );
    *top.lock().unwrap() = case.repo.path();
    let edited = CODE.replace("last = ", "first = ");
    later.lock().unwrap().clone_from(&edited);
    assert_eq!(case.fix(&["F1"]).code, 0);
    assert_eq!(case.text("a.py"), edited.replace(BAD, GOOD));
    std::fs::write(case.repo.path().join("a.py"), CODE).unwrap();
    *later.lock().unwrap() = CODE.replace(BAD, "    x = 0");
    let run = case.fix(&["F1"]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    assert!(
        run.stderr
            .contains("a.py was edited in the same lines meanwhile; nothing was written"),
        "{}",
        run.stderr
    );
    let (command, kept) = kept_patch(&run);
    assert_eq!(case.text("a.py"), CODE.replace(BAD, "    x = 0"));
    assert_eq!(case.stored()[1]["outcome"], json!("conflict"));
    assert_eq!(
        std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // The hint works in any folder, and writes conflicting parts to a file next to the edited one.
    let shell = |command: &str| {
        std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir("/")
            .output()
            .unwrap()
    };
    let said = shell(&command);
    assert!(
        case.text("a.py.rej").contains(GOOD),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    std::fs::remove_file(case.repo.path().join("a.py.rej")).unwrap();
    // The next fix saves its patch next to one of another repository.
    let other = PathBuf::from(kept.to_str().unwrap().replace("-2.patch", "-3.patch"));
    std::fs::write(&other, "another").unwrap();
    std::fs::write(case.repo.path().join("a.py"), CODE).unwrap();
    let (_, next) = kept_patch(&case.fix(&["F1"]));
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "another");
    assert!(
        next != kept && next != other && std::fs::read_to_string(&next).unwrap().contains(GOOD),
        "{next:?}"
    );
}

/// Returns the command in the hint of a conflicting fix, and its patch.
fn kept_patch(run: &Run) -> (String, PathBuf) {
    let hint = run
        .stderr
        .lines()
        .find_map(|line| line.split_once("hint: merge it by hand"))
        .unwrap_or_else(|| panic!("{}", run.stderr));
    let (_, command) = hint.1.split_once(": ").unwrap();
    (
        command.to_owned(),
        PathBuf::from(command.rsplit(' ').next().unwrap()),
    )
}

#[test]
fn a_patch_file_is_never_written_over_another_file() {
    let case = Case::new(vec![vec![edit("a.py", BAD, GOOD)]]);
    let top = case.repo.path();
    std::fs::write(top.join("mine.patch"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", top.join("link.patch")).unwrap();
    std::os::unix::fs::symlink("mine.patch", top.join("link")).unwrap();
    std::fs::create_dir(top.join("folder")).unwrap();
    for name in ["mine.patch", "link.patch", "link", "folder"] {
        let asked = case.server.questions().len();
        let run = case.refused(
            &["F1", "--patch", name],
            2,
            &format!("{name} exists and is not overwritten"),
        );
        assert!(
            run.stderr.contains(
                "hint: choose another name: claude-reviewer fix F1 --session latest --yes --patch "
            ),
            "{}",
            run.stderr
        );
        assert_eq!(case.server.questions().len(), asked, "a model was paid");
    }
    assert!(!top.join("nowhere").exists());
    let run = case.fix(&["F1", "--patch", "it's new.patch"]);
    let (_, command) = run.stdout.split_once("apply it with: ").unwrap();
    let done = std::process::Command::new("sh")
        .args(["-c", command.trim()])
        .current_dir(&top)
        .status()
        .unwrap();
    assert!(done.success(), "{command}");
    assert_eq!(case.text("a.py"), CODE.replace(BAD, GOOD));
}

#[test]
fn a_fix_can_be_written_as_a_patch() {
    let case = Case::new(vec![vec![
        edit("a.py", BAD, GOOD),
        create("lib/b.py", "B = 1\n"),
    ]]);
    let run = case.fix(&["F1", "--patch", "fix.patch"]);
    assert_eq!(
        (run.code, case.text("a.py").as_str()),
        (0, CODE),
        "{}",
        run.stderr
    );
    case.repo.git(&["apply", "fix.patch"]);
    assert_eq!(
        (case.text("a.py"), case.text("lib/b.py").as_str()),
        (CODE.replace(BAD, GOOD), "B = 1\n")
    );
    assert_eq!(case.stored()[0]["outcome"], json!("patched"));
}

#[test]
fn line_ends_and_modes_stay() {
    let code = CODE.replace('\n', "\r\n");
    let case = Case::with(
        &code,
        vec![vec![edit("a.py", BAD, GOOD)]],
        "",
        Box::new(|_| None),
    );
    let file = case.repo.path().join("a.py");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(case.fix(&["F1"]).code, 0);
    assert_eq!(case.text("a.py"), code.replace(BAD, GOOD));
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o755
    );
}
