//! Undoes a decision: restores the entries of some findings in the person's own file and in the proposals.

use super::decide::{Here, changed_file, shown};
use crate::disposition::{self, Entry};
use crate::error::Result;
use crate::review::decided;

/// Decisions and proposals on some findings at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    fingerprints: Vec<String>,
    own: Vec<Entry>,
    proposed: Vec<Entry>,
}

/// Reads what is decided and proposed about findings now.
///
/// # Errors
/// Usage: a file of decisions with an error.
pub fn held(here: &Here<'_>, fingerprints: Vec<String>) -> Result<Held> {
    let mut reader = here.repo.reader();
    let mut own = decided::own(&mut reader, here.place, &mut Vec::new())?;
    let mut proposed = decided::proposed(&mut reader, here.place)?;
    own.retain(|e| fingerprints.contains(&e.fingerprint));
    proposed.retain(|e| fingerprints.contains(&e.fingerprint));
    Ok(Held { fingerprints, own, proposed })
}

/// Restores what was decided and proposed about the findings. Other findings keep their decisions.
///
/// # Errors
/// As [`super::decide::decide`].
pub fn restore(here: &Here<'_>, held: &Held) -> Result<()> {
    here.store.decide(|before| held.put(&shown(here, decided::OWN), before, &held.own))?;
    let has_file = here.place.folder().join(decided::PROPOSED).exists();
    if has_file || !held.proposed.is_empty() {
        here.store.propose(|before| held.put(&shown(here, decided::PROPOSED), before, &held.proposed))?;
    }
    Ok(())
}

impl Held {
    /// Returns a file with these entries in place of those about the findings.
    fn put(&self, name: &str, before: Option<Vec<u8>>, entries: &[Entry]) -> Result<Vec<u8>> {
        let mut all = changed_file(name, before, std::iter::empty())?;
        all.retain(|e| !self.fingerprints.contains(&e.fingerprint));
        all.extend(entries.iter().cloned());
        Ok(disposition::render(&all).into_bytes())
    }
}
