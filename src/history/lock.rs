//! One writer at a time: `flock` on `.reviews/lock`.
//!
//! The kernel gives the lock back when its holder ends, however it ends; the file stays and says who had it last.

use super::disk::Folder;
use super::trouble::{Result, Trouble};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

const NAME: &str = "lock";
/// Between two tries to take it.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// The lock of a store, for as long as this lives.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the open file")] File);

impl Lock {
    /// Takes the lock; waits for it as long as `patience` allows.
    pub(super) fn take(root: &Folder, patience: Duration) -> Result<Self> {
        let mut file = root.open_lock(NAME)?;
        let started = Instant::now();
        let mut pause = SHORTEST;
        while !root.try_lock(&file, NAME)? {
            if started.elapsed() >= patience {
                return Err(Trouble::Locked(holder(&file)));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
        // For the message of whoever waits in vain; nothing depends on it.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self(file))
    }
}

/// Names who has the lock, as far as the file says.
fn holder(file: &File) -> String {
    let mut text = [0; 16];
    let read = file.read_at(&mut text, 0).unwrap_or(0);
    let pid = std::str::from_utf8(&text[..read]).ok().and_then(|t| t.trim().parse::<u32>().ok());
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
