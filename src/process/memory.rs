//! The memory that a program and its descendants use, from `/proc` on Linux.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;
use tokio::time::sleep;

/// Time between two measurements.
const INTERVAL: Duration = Duration::from_millis(50);

/// Waits until a process and its descendants use more than `most` bytes. Never returns without a
/// limit, and never on systems without `/proc`.
pub(super) async fn exceeds(process: Option<u32>, most: Option<u64>) {
    let (Some(process), Some(most)) = (process, most) else {
        return std::future::pending().await;
    };
    loop {
        sleep(INTERVAL).await;
        if used(process).is_some_and(|bytes| bytes > most) {
            return;
        }
    }
}

/// A process in `/proc/PID/stat`, see proc_pid_stat(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// Resident memory in pages.
    pages: u64,
}

/// Returns the resident memory of a process and its descendants in bytes. Shared pages count once
/// for each process.
fn used(root: u32) -> Option<u64> {
    let mut all = HashMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // A process that has ended in the meantime has no file.
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        all.extend(parse(&text).map(|process| (id, process)));
    }
    let pages: u64 = all
        .iter()
        .filter(|(id, _)| is_below(&all, **id, root))
        .map(|(_, p)| p.pages)
        .sum();
    Some(pages * page_size())
}

/// Returns true if a process is the root or one of its descendants.
fn is_below(all: &HashMap<u32, Process>, id: u32, root: u32) -> bool {
    let parents = std::iter::successors(Some(id), |id| all.get(id).map(|p| p.parent));
    // A reused ID could form a circle.
    parents.take(all.len() + 1).any(|id| id == root)
}

#[cfg(unix)]
fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(not(unix))]
fn page_size() -> u64 {
    4096
}

/// Reads `/proc/PID/stat`. The name in parentheses can contain anything, so the fields are counted
/// from its end.
fn parse(text: &str) -> Option<Process> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    // Fields 4 and 24 of the file; the first one here is field 3.
    let parent = fields.nth(1)?.parse().ok()?;
    let pages = fields.nth(19)?.parse().ok()?;
    Some(Process { parent, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_move_the_fields() {
        let rest =
            "S 17 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 4096000 321 18446744073709551615 1";
        for name in ["sh", "a) S 9 9", "x y"] {
            let process = parse(&format!("42 ({name}) {rest}"));
            assert_eq!(
                process,
                Some(Process {
                    parent: 17,
                    pages: 321
                }),
                "{name}"
            );
        }
        assert_eq!(parse("42 (sh) S 17"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn descendants_count() {
        let own = used(std::process::id()).unwrap();
        assert!(own > 1 << 20, "{own}");
        let mut shell = std::process::Command::new("sh");
        let mut child = shell.args(["-c", "sleep 2 & wait"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let of_the_child = used(child.id()).unwrap();
        let of_its_parent = used(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            of_the_child > 0 && of_its_parent > of_the_child,
            "{of_the_child} {of_its_parent}"
        );
    }
}
