//! One writer at a time: `flock` on `.reviews/lock`.
//!
//! The kernel gives the lock back when its holder ends, however it ends; the file stays and says who had it last.

use super::disk::{Folder, LockFile};
use super::trouble::{Result, Trouble};
use std::time::{Duration, Instant};

const NAME: &str = "lock";
/// Between two tries to take it.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// The lock of a store, for as long as this lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: LockFile,
}

impl Lock {
    /// Takes the lock; waits for it as long as `patience` allows.
    pub(super) fn take(root: &Folder, patience: Duration) -> Result<Self> {
        let file = root.open_lock(NAME)?;
        let started = Instant::now();
        let mut pause = SHORTEST;
        while !file.try_lock()? {
            if started.elapsed() >= patience {
                let holder = file.noted().trim().parse::<u32>();
                let holder = holder.map_or_else(|_| "another process".to_owned(), |pid| format!("process {pid}"));
                return Err(Trouble::Locked(holder));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
        file.note(&format!("{}\n", std::process::id()));
        Ok(Self { _file: file })
    }
}
