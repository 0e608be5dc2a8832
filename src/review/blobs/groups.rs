//! Joins the findings about one secret in the versions of one file.

use super::{Reread, Scanned};
use crate::diff::{FileChange, ObjectId, RepoPath};
use crate::error::Result;
use crate::finding::listing::hash;
use crate::finding::{Also, Finding, Location, Severity, place};
use crate::git::{BlobNumber, NamedEntry, TreeSearch};
use crate::verdict::FailureCause;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

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
    /// next to a secret does not make another one of it.
    pub(super) fn of(path: u32, finding: &Finding, file: &FileChange) -> Self {
        let secret = secret_of(finding, file).map_or(finding.identity, hash);
        Self {
            path,
            rule: finding.rule_id().to_owned(),
            secret,
        }
    }

    /// Returns what is equal for the same secret at all paths.
    fn secret(&self) -> AnySecret {
        (self.rule.clone(), self.secret)
    }
}

/// Identifies a secret at any path: the rule, and the hash of the secret.
type AnySecret = (String, u64);

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

/// Returns a value that is greater for the finding that stands for a secret which one version has
/// several times: one that no comment suppresses, then the most severe one.
fn weight(finding: &Finding) -> (bool, Severity) {
    (finding.suppressed.is_none(), finding.severity())
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
        let (oldest, known) = &group.finding;
        if version < *oldest || version == *oldest && weight(&finding) > weight(known) {
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

    /// Reports one finding for each secret, in its oldest version. `head`: the tree of HEAD, and
    /// whether all blobs of the history were searched that the policy does not ignore.
    pub(super) fn report(
        mut self,
        reread: &Reread<'_>,
        (head, is_all_searched): (Option<ObjectId>, bool),
        out: &mut Scanned,
    ) {
        for group in &mut self.all {
            group.versions.sort_unstable();
            group.versions.dedup();
        }
        let mut fate = match self.in_head(reread, head) {
            Ok(fate) => fate,
            Err(e) => {
                out.coverage.fail(FailureCause::Other(e.on_one_line()));
                HeadSecrets::default()
            }
        };
        fate.is_certain &= is_all_searched;
        // A secret that was there before the range is not new in it. It counts above, because HEAD
        // may have a new secret at an old place too.
        self.all
            .retain(|g| g.versions.first().is_none_or(|(rank, _)| *rank > 0));
        let places: Vec<_> = self.all.iter().map(|g| fate.place(g)).collect();
        let findings = self.reread(reread, &places);
        for (group, place) in self.all.into_iter().zip(places) {
            let finding = group.finding(reread, &findings, place, fate.is_certain);
            out.findings.push(finding);
        }
    }

    /// Finds the versions with a secret in the tree of HEAD.
    fn in_head(&self, reread: &Reread<'_>, head: Option<ObjectId>) -> Result<HeadSecrets> {
        let Some(tree) = head.filter(|_| !self.all.is_empty()) else {
            return Ok(HeadSecrets::default());
        };
        let versions = self.all.iter().flat_map(|g| g.versions.iter());
        let wanted: HashSet<BlobNumber> = versions.map(|(_, number)| *number).collect();
        let found = reread.blobs.in_tree(
            tree,
            TreeSearch {
                wanted: &wanted,
                is_searched: &|number| reread.is_searched(number),
                is_over: &|| reread.is_over(),
            },
        )?;
        let mut versions: HashMap<AnySecret, Vec<BlobNumber>> = HashMap::new();
        for group in &self.all {
            let numbers = group.versions.iter().map(|(_, number)| *number);
            let numbers = numbers.filter(|n| found.paths.contains_key(n));
            let known = versions.entry(group.key.secret()).or_default();
            known.extend(numbers);
        }
        Ok(HeadSecrets {
            paths: found.paths,
            versions,
            is_certain: !found.has_unsearched,
        })
    }

    /// Runs the rules again over the oldest version of each group, if that was not read, and over
    /// the version in HEAD. Each blob is read once, whatever the number of its secrets.
    fn reread(
        &self,
        reread: &Reread<'_>,
        places: &[Option<(BlobNumber, RepoPath)>],
    ) -> HashMap<(BlobNumber, AnySecret), Finding> {
        let mut needs: BTreeMap<BlobNumber, HashSet<AnySecret>> = BTreeMap::new();
        for (group, place) in self.all.iter().zip(places) {
            let oldest = group.unread().into_iter();
            for number in oldest.chain(place.iter().map(|(number, _)| *number)) {
                needs.entry(number).or_default().insert(group.key.secret());
            }
        }
        let mut out = HashMap::new();
        for (number, secrets) in needs {
            if reread.is_over() {
                break;
            }
            for found in reread.again(number) {
                let secret = found.key.secret();
                if !secrets.contains(&secret) {
                    continue;
                }
                match out.entry((number, secret)) {
                    Entry::Vacant(entry) => {
                        entry.insert(found.finding);
                    }
                    Entry::Occupied(mut entry) if weight(&found.finding) > weight(entry.get()) => {
                        entry.insert(found.finding);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        out
    }
}

/// The secrets that the tree of HEAD has.
#[derive(Default)]
struct HeadSecrets {
    paths: HashMap<BlobNumber, Vec<RepoPath>>,
    /// Versions by their secrets, which may be at several paths.
    versions: HashMap<AnySecret, Vec<BlobNumber>>,
    /// True if the tree has no other secrets than these that the rules report.
    is_certain: bool,
}

impl HeadSecrets {
    /// Returns the place of a secret in the tree of HEAD: at its own path if possible.
    fn place(&self, group: &SecretGroup) -> Option<(BlobNumber, RepoPath)> {
        let own = group.finding.1.file();
        let versions = self.versions.get(&group.key.secret())?;
        let places = versions.iter().flat_map(|number| {
            let paths = self.paths.get(number).map_or(&[][..], Vec::as_slice);
            paths.iter().map(move |p| (Some(p) != own, p, *number))
        });
        let (_, path, number) = places.min()?;
        Some((number, path.clone()))
    }
}

impl SecretGroup {
    /// Returns the oldest version, if the rules have not read it because its lines are copied from
    /// a newer one.
    fn unread(&self) -> Option<BlobNumber> {
        let oldest = self.versions.first()?;
        (*oldest != self.finding.0).then_some(oldest.1)
    }

    /// Returns the finding in the oldest version, with what became of the secret. `place`: the
    /// version and path in the tree of HEAD that have it. `is_certain`: without a place, HEAD does
    /// not have it.
    fn finding(
        self,
        reread: &Reread<'_>,
        findings: &HashMap<(BlobNumber, AnySecret), Finding>,
        place: Option<(BlobNumber, RepoPath)>,
        is_certain: bool,
    ) -> Finding {
        let secret = self.key.secret();
        let oldest = self.unread();
        let oldest = oldest.and_then(|number| findings.get(&(number, secret.clone())));
        let mut finding = oldest.cloned().unwrap_or(self.finding.1);
        let first = self.versions.first().map(|(_, number)| *number);
        let named = first.and_then(|number| reread.blobs.named(number));
        let mut texts: Vec<String> = named.map(|n| named_text(reread, n)).into_iter().collect();
        match place {
            // A version is without its finding if only the line of the secret is copied, and the
            // rules report it no longer because of another line. Then nothing is said about HEAD.
            Some((number, path)) => {
                if let Some(now) = findings.get(&(number, secret)) {
                    finding.suppressed.clone_from(&now.suppressed);
                    finding.raise(now.severity());
                    texts.push(still_there(reread, &path, now, &mut finding));
                }
            }
            None if is_certain => texts.push(
                "The tree of HEAD does not have it, but the history does, so replace it anyway."
                    .to_owned(),
            ),
            None => {}
        }
        match self.versions.len() {
            0 | 1 => {}
            2 => texts.push("One more version of the file has it.".to_owned()),
            n => texts.push(format!("{} more versions of the file have it.", n - 1)),
        }
        if !texts.is_empty() {
            finding.add_to_message(&texts.join(" "));
        }
        finding
    }
}

/// Says which object has a secret that no commit that was searched has at this path. A commit can
/// have it elsewhere: below a path that is not searched, or in a commit that cannot be read.
fn named_text(reread: &Reread<'_>, named: &NamedEntry) -> String {
    let kind = if named.is_blob { "blob" } else { "tree" };
    let name = reread.scan.rules.masked(&named.name);
    let what = match name.strip_prefix("refs/tags/") {
        Some(tag) => format!("the tag {tag}"),
        None if name.starts_with("refs/") => format!("the reference {name}"),
        None => "a reference".to_owned(),
    };
    format!(
        "It is in the {kind} {} that {what} names. No commit that was searched has it at this path.",
        named.id.short()
    )
}

/// Says where the tree of HEAD has a secret, and adds the line to the finding.
fn still_there(
    reread: &Reread<'_>,
    path: &RepoPath,
    now: &Finding,
    finding: &mut Finding,
) -> String {
    let lines = now.lines();
    let location = Location {
        file: path.clone(),
        lines,
    };
    if let Some(lines) = lines {
        finding.add_place(Also {
            file: path.clone(),
            line: lines.first,
            quote: now.quote().to_owned(),
        });
    }
    let shown = reread.scan.rules.masked(&place(Some(&location)));
    format!("The tree of HEAD still has it, at {shown}.")
}
