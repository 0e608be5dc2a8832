//! Allows one writer at a time: `flock` on `.reviews/lock`.
//!
//! The kernel releases the lock when its holder ends in any way. The file remains, with the process
//! ID of the last holder.

use super::disk::{LockFile, StoreFolder};
use super::trouble::{Result, Trouble};
use std::time::{Duration, Instant};

const NAME: &str = "lock";
/// Pauses between attempts to take it.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// The lock of a store, released on drop.
#[derive(Debug)]
pub(super) struct Lock {
    _file: LockFile,
}

impl Lock {
    /// Takes the lock; waits for it up to `patience`.
    pub(super) fn take(root: &StoreFolder, patience: Duration) -> Result<Self> {
        let file = root.open_lock(NAME)?;
        let started = Instant::now();
        let mut pause = SHORTEST;
        while !file.try_lock()? {
            if started.elapsed() >= patience {
                let holder = file.noted().trim().parse::<u32>();
                let holder = holder.map_or_else(
                    |_| "another process".to_owned(),
                    |pid| format!("process {pid}"),
                );
                return Err(Trouble::Locked(holder));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
        }
        file.note(&format!("{}\n", std::process::id()));
        Ok(Self { _file: file })
    }
}
