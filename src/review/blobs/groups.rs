//! Joins the findings about one secret in the versions of one file.

use super::{Reread, Scanned};
use crate::diff::{FileChange, ObjectId, RepoPath};
use crate::finding::listing::hash;
use crate::finding::{Also, Finding, Location, place};
use crate::git::BlobNumber;
use crate::verdict::FailureCause;
use std::collections::{HashMap, HashSet};

/// Lines below the header of a key that identify the key.
const KEY_LINES: u32 = 3;

/// Identifies a secret in the versions of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SecretKey {
    /// Number of the path.
    path: u32,
    rule: String,
    /// Hash of the secret. It has no meaning outside of this process.
    secret: u64,
}

impl SecretKey {
    /// Returns the key of a finding. The secret itself counts and not its line, so that an edit
    /// beside a secret does not make another one of it.
    pub(super) fn of(path: u32, finding: &Finding, file: &FileChange) -> Self {
        let secret = secret_of(finding, file).map_or(finding.identity, hash);
        Self {
            path,
            rule: finding.rule_id().to_owned(),
            secret,
        }
    }

    /// Returns true if the keys are about the same secret, whatever its path.
    pub(super) fn is_same_secret(&self, other: &Self) -> bool {
        (&self.rule, self.secret) == (&other.rule, other.secret)
    }
}

/// Returns the bytes of a finding's secret; `None` if the finding has no columns. For a header, such
/// as that of a private key, returns the lines below it too.
fn secret_of(finding: &Finding, file: &FileChange) -> Option<Vec<u8>> {
    let (text, lines) = (&file.text()?.new, finding.lines()?);
    let (start, end) = lines.columns?;
    let mut secret = text
        .line(lines.first)?
        .get(start as usize..end as usize)?
        .to_vec();
    if secret.starts_with(b"-----BEGIN") {
        let below = (1..=KEY_LINES).filter_map(|n| text.line(lines.first.plus(n)));
        below.for_each(|line| secret.extend_from_slice(line));
    }
    Some(secret)
}

/// A version of a file: the rank of the commit that introduced it, and its number.
type Version = (u32, BlobNumber);

/// One secret of one file.
struct SecretGroup {
    key: SecretKey,
    /// Versions with the secret, in no order, possibly several times.
    versions: Vec<Version>,
    /// The finding in the oldest version that the rules have read.
    finding: (Version, Finding),
}

/// The secrets of a history.
#[derive(Default)]
pub(super) struct SecretGroups {
    all: Vec<SecretGroup>,
    index: HashMap<SecretKey, usize>,
}

impl SecretGroups {
    /// Adds a finding, and returns the number of its group.
    pub(super) fn add(&mut self, key: SecretKey, version: Version, finding: Finding) -> usize {
        let Some(at) = self.index.get(&key).copied() else {
            self.index.insert(key.clone(), self.all.len());
            self.all.push(SecretGroup {
                key,
                versions: vec![version],
                finding: (version, finding),
            });
            return self.all.len() - 1;
        };
        self.add_version(at, version);
        let group = &mut self.all[at];
        if version < group.finding.0 {
            group.finding = (version, finding);
        }
        at
    }

    /// Adds a version to a group.
    pub(super) fn add_version(&mut self, group: usize, version: Version) {
        let versions = &mut self.all[group].versions;
        if versions.last() != Some(&version) {
            versions.push(version);
        }
    }

    /// Reports one finding for each secret, in its oldest version. `head`: the tree of HEAD.
    pub(super) fn report(mut self, reread: &Reread<'_>, head: Option<ObjectId>, out: &mut Scanned) {
        for group in &mut self.all {
            group.versions.sort_unstable();
            group.versions.dedup();
        }
        // A secret that was there before the range is not new in it.
        self.all
            .retain(|g| g.versions.first().is_none_or(|(rank, _)| *rank > 0));
        let wanted: HashSet<BlobNumber> = self
            .all
            .iter()
            .flat_map(|g| g.versions.iter().map(|(_, number)| *number))
            .collect();
        let in_head = match head.map(|tree| reread.blobs.in_tree(tree, &wanted)) {
            None => HashMap::new(),
            Some(Ok(paths)) => paths,
            Some(Err(e)) => {
                out.coverage.fail(FailureCause::Other(e.on_one_line()));
                HashMap::new()
            }
        };
        let same: HashMap<(String, u64), Vec<BlobNumber>> = self.in_tree_by_secret(&in_head);
        for group in self.all {
            let key = (group.key.rule.clone(), group.key.secret);
            let still = same.get(&key).map_or(&[][..], Vec::as_slice);
            out.findings.push(group.finding(reread, &in_head, still));
        }
    }

    /// Returns the versions in the tree of HEAD by their secrets, which may be at several paths.
    fn in_tree_by_secret(
        &self,
        in_head: &HashMap<BlobNumber, Vec<RepoPath>>,
    ) -> HashMap<(String, u64), Vec<BlobNumber>> {
        let mut out: HashMap<(String, u64), Vec<BlobNumber>> = HashMap::new();
        for group in &self.all {
            let numbers = group.versions.iter().map(|(_, number)| *number);
            let numbers = numbers.filter(|n| in_head.contains_key(n));
            let key = (group.key.rule.clone(), group.key.secret);
            out.entry(key).or_default().extend(numbers);
        }
        out
    }
}

impl SecretGroup {
    /// Returns the finding in the oldest version, with what became of the secret. `still`: versions
    /// in the tree of HEAD that have it.
    fn finding(
        self,
        reread: &Reread<'_>,
        in_head: &HashMap<BlobNumber, Vec<RepoPath>>,
        still: &[BlobNumber],
    ) -> Finding {
        let Self {
            key,
            versions,
            finding: (known, mut finding),
        } = self;
        // The oldest version was not read if its lines are copied from a newer one.
        if let Some(oldest) = versions.first().filter(|oldest| **oldest != known)
            && let Some(first) = reread.finding(oldest.1, &key)
        {
            finding = first;
        }
        let path = finding.file().cloned();
        let path = path.as_ref();
        let mut places = still.iter().flat_map(|number| {
            let paths = in_head.get(number).map_or(&[][..], Vec::as_slice);
            paths.iter().map(move |p| (Some(p) != path, p, *number))
        });
        let first = places.next();
        let place = first.map(|first| places.fold(first, Ord::min));
        let mut texts = Vec::new();
        match place {
            Some((_, path, number)) => {
                let now = reread.finding(number, &key);
                if let Some(now) = &now {
                    finding.suppressed.clone_from(&now.suppressed);
                }
                texts.push(still_there(reread, path, now.as_ref(), &mut finding));
            }
            None => texts.push(
                "The tree of HEAD does not have it, but the history does, so replace it anyway."
                    .to_owned(),
            ),
        }
        match versions.len() {
            0 | 1 => {}
            2 => texts.push("One more version of the file has it.".to_owned()),
            n => texts.push(format!("{} more versions of the file have it.", n - 1)),
        }
        finding.add_to_message(&texts.join(" "));
        finding
    }
}

/// Says where the tree of HEAD has a secret, and adds the line to the finding.
fn still_there(
    reread: &Reread<'_>,
    path: &RepoPath,
    now: Option<&Finding>,
    finding: &mut Finding,
) -> String {
    let lines = now.and_then(Finding::lines);
    let location = Location {
        file: path.clone(),
        lines,
    };
    if let (Some(now), Some(lines)) = (now, lines) {
        finding.add_place(Also {
            file: path.clone(),
            line: lines.first,
            quote: now.quote().to_owned(),
        });
    }
    let shown = reread.scan.rules.masked(&place(Some(&location)));
    format!("The tree of HEAD still has it, at {shown}.")
}
