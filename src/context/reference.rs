//! Finds references to tickets, issues and pages in the names and texts of a change. Pure.
//!
//! The texts are the author's. A reference is only a name: [`super::allow`] decides whether it may
//! be read.

use super::Allowed;
use crate::text::first_bytes;
use regex::Regex;
use std::fmt;

/// References of one change, at most.
const MAX_REFERENCES: usize = 20;
/// Bytes of one text that are searched, at most.
const MAX_TEXT: usize = 64 << 10;
/// Bytes of a key, at most.
const MAX_KEY: usize = 64;

/// A reference of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// The key of a ticket: `PROJ-12`.
    Ticket(String),
    /// An issue of the forge. `project` is `None` for the reviewed repository.
    Issue {
        project: Option<String>,
        number: u64,
    },
    /// A page by its number, with the space in its address.
    Page { space: Option<String>, id: String },
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ticket(key) => f.write_str(key),
            Self::Issue {
                project: None,
                number,
            } => write!(f, "#{number}"),
            Self::Issue {
                project: Some(project),
                number,
            } => write!(f, "{project}#{number}"),
            Self::Page { id, .. } => write!(f, "page {id}"),
        }
    }
}

/// The texts of a change, the most relevant first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeTexts {
    pub branch: String,
    pub title: String,
    pub description: String,
    /// Commit messages, newest first.
    pub messages: Vec<String>,
    /// Number of the pull request itself, which is not a reference.
    pub own: Option<u64>,
}

/// The project under review at its forge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// Name of the forge's service, such as `github`.
    pub forge: &'static str,
    /// Start of the addresses of its pages, with a trailing slash.
    pub web: String,
    /// `owner/name`.
    pub project: String,
    /// False for a forge that has no issues (Bitbucket Data Center).
    pub has_issues: bool,
}

/// Returns the references of a change without duplicates, best first: those of the branch, the
/// title, the description and the messages; within a text, those after a closing keyword come
/// first. At most 20.
pub fn references(
    texts: &ChangeTexts,
    home: Option<&Home>,
    pattern: Option<&Regex>,
    allowed: &Allowed,
) -> Vec<Reference> {
    let home = home.filter(|h| h.has_issues);
    let mut out: Vec<Reference> = Vec::new();
    let branch = branch_references(&texts.branch, home, pattern, allowed);
    let rest = [&texts.title, &texts.description]
        .into_iter()
        .chain(&texts.messages);
    let rest = rest.flat_map(|text| text_references(text, home, pattern, allowed));
    for reference in branch.into_iter().chain(rest) {
        let is_own = matches!(&reference, Reference::Issue { project: None, number } if Some(*number) == texts.own);
        if !is_own && !out.contains(&reference) {
            out.push(reference);
        }
        if out.len() == MAX_REFERENCES {
            break;
        }
    }
    out
}

/// Finds references in a branch name. Branches are often in lower case: such a key counts only if
/// its project is allowed.
fn branch_references(
    branch: &str,
    home: Option<&Home>,
    pattern: Option<&Regex>,
    allowed: &Allowed,
) -> Vec<Reference> {
    let branch = first_bytes(branch, MAX_TEXT);
    let mut out = tickets(branch, pattern, allowed, true);
    if pattern.is_none() {
        let upper = branch.to_ascii_uppercase();
        let mut known = tickets(&upper, None, allowed, true);
        known.retain(|(_, r)| matches!(r, Reference::Ticket(key) if allowed.names_project(key)));
        out.extend(known);
    }
    if home.is_some() {
        // `issue-12-title`, `gh-12`, `issues/12`.
        let lower = branch.to_ascii_lowercase();
        for word in ["issue-", "issues/", "issue/", "gh-"] {
            let starts = lower
                .match_indices(word)
                .filter(|(at, _)| is_start(&lower, *at));
            let numbers =
                starts.filter_map(|(at, _)| Some((at, number_at(&lower, at + word.len())?.0)));
            out.extend(numbers.map(|(at, number)| {
                (
                    at,
                    Reference::Issue {
                        project: None,
                        number,
                    },
                )
            }));
        }
        out.extend(issues(branch, home).into_iter().map(|(at, _, r)| (at, r)));
    }
    out.sort_by_key(|(at, _)| *at);
    out.into_iter().map(|(_, r)| r).collect()
}

fn text_references(
    text: &str,
    home: Option<&Home>,
    pattern: Option<&Regex>,
    allowed: &Allowed,
) -> Vec<Reference> {
    let text = first_bytes(text, MAX_TEXT);
    let mut out: Vec<(bool, usize, Reference)> = Vec::new();
    out.extend(
        tickets(text, pattern, allowed, false)
            .into_iter()
            .map(|(at, r)| (!closes(text, at), at, r)),
    );
    out.extend(
        issues(text, home)
            .into_iter()
            .map(|(at, closing, r)| (!closing, at, r)),
    );
    out.extend(pages(text).into_iter().map(|(at, r)| (true, at, r)));
    out.sort_by_key(|(is_weak, at, _)| (*is_weak, *at));
    out.into_iter().map(|(_, _, r)| r).collect()
}

/// Words in the form of a ticket's project that name a standard, a cipher, an encoding or a part of
/// a document.
const NOT_PROJECTS: &[&str] = &[
    "ADR", "AES", "AGPL", "ANSI", "ARM", "ARMV", "AVX", "BASE", "BETA", "BIG", "BLAKE", "BSD",
    "CEN", "CHAPTER", "CP", "CRC", "CVE", "CWE", "DIN", "DSA", "EC", "ECDH", "ECDSA", "ECMA", "ED",
    "EN", "ES", "EUC", "FIG", "FIGURE", "FIPS", "GB", "GHSA", "GMT", "GPL", "H", "HMAC", "HS",
    "HTTP", "HTTPS", "IEC", "IEEE", "IETF", "IP", "IPV", "ISBN", "ISO", "ITU", "JEP", "JIS",
    "JPEG", "JSR", "KOI", "LATIN", "LEVEL", "LGPL", "MD", "MIT", "MP", "MPEG", "NIST", "OWASP",
    "PART", "PBKDF", "PCI", "PEP", "PHASE", "PKCS", "POSIX", "PS", "RC", "RFC", "RIPEMD", "RS",
    "RSA", "SECTION", "SHA", "SHAKE", "SHIFT", "SOC", "SQL", "SSE", "SSL", "STEP", "TABLE", "TIER",
    "TLS", "UCS", "USB", "UTC", "UTF", "V", "VERSION", "VIM", "WINDOWS", "X",
];

/// Finds keys of tickets, with their positions. In a branch name, hyphens and underscores separate
/// words.
fn tickets(
    text: &str,
    pattern: Option<&Regex>,
    allowed: &Allowed,
    is_branch: bool,
) -> Vec<(usize, Reference)> {
    if let Some(pattern) = pattern {
        let keys = pattern
            .captures_iter(text)
            .filter_map(|c| c.get(1).or_else(|| c.get(0)));
        let keys = keys.filter(|m| is_key(m.as_str()));
        return keys
            .map(|m| (m.start(), Reference::Ticket(m.as_str().to_owned())))
            .collect();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    for dash in memchr::memchr_iter(b'-', bytes) {
        let before = bytes[..dash].iter().rev();
        let length = before
            .take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || **b == b'_')
            .count();
        let underscores = text[dash - length..dash]
            .bytes()
            .take_while(|b| is_branch && *b == b'_')
            .count();
        let (start, length) = (dash - length + underscores, length - underscores);
        let project = &text[start..dash];
        let Some((number, end)) = number_at(text, dash + 1) else {
            continue;
        };
        let is_project = (2..=16).contains(&length) && bytes[start].is_ascii_uppercase();
        let begins = is_start(text, start) || is_branch && text[..start].ends_with('-');
        if !is_project || !begins || goes_on(text, end) || number > 9_999_999 {
            continue;
        }
        if NOT_PROJECTS.contains(&project.trim_end_matches(|c: char| c.is_ascii_digit()))
            && !allowed.lists(project)
        {
            continue;
        }
        // `GH-12` is an issue of GitHub.
        if project == "GH" && !allowed.lists(project) {
            continue;
        }
        out.push((start, Reference::Ticket(text[start..end].to_owned())));
    }
    out
}

fn is_key(key: &str) -> bool {
    !key.trim().is_empty()
        && key.len() <= MAX_KEY
        && !key.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Returns true if a word can start at a position.
fn is_start(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '-' | '.' | '%' | '\\' | '$')))
}

/// Returns true if the text continues at a position, so that the key is only a prefix:
/// `CVE-2024-1234`, `TLS-1.3`, `A-1b`.
fn goes_on(text: &str, at: usize) -> bool {
    let mut rest = text[at..].chars();
    match (rest.next(), rest.next()) {
        (Some(c), _) if c.is_alphanumeric() || c == '_' => true,
        (Some('-' | '.' | ':'), Some(c)) => c.is_ascii_digit(),
        _ => false,
    }
}

/// Parses a positive number without leading zeros, and returns its end.
fn number_at(text: &str, at: usize) -> Option<(u64, usize)> {
    let rest = text.get(at..)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = rest[..digits]
        .parse()
        .ok()
        .filter(|_| digits <= 9 && !rest.starts_with('0'))?;
    Some((number, at + digits))
}

/// Returns true if a closing keyword precedes a position: `fixes `, `Closes: `.
fn closes(text: &str, at: usize) -> bool {
    const WORDS: [&str; 12] = [
        "close",
        "closes",
        "closed",
        "fix",
        "fixes",
        "fixed",
        "resolve",
        "resolves",
        "resolved",
        "implement",
        "implements",
        "closing",
    ];
    let before = text[..at].trim_end_matches([' ', ':', '\t', '(', '[']);
    let word = before
        .rsplit(|c: char| !c.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    WORDS.iter().any(|w| w.eq_ignore_ascii_case(word))
}

/// Finds references to issues: `#12`, `owner/name#12`, `GH-12`, and addresses of pages of the
/// forge. The flag is true after a closing keyword.
fn issues(text: &str, home: Option<&Home>) -> Vec<(usize, bool, Reference)> {
    let Some(home) = home else { return Vec::new() };
    let mut out = Vec::new();
    for hash in memchr::memchr_iter(b'#', text.as_bytes()) {
        let Some((number, end)) = number_at(text, hash + 1) else {
            continue;
        };
        let start = text[..hash]
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
            .map_or(0, |i| {
                i + text[i..].chars().next().map_or(1, char::len_utf8)
            });
        let project = &text[start..hash];
        if goes_on(text, end)
            || names_a_pull_request(&text[..start])
            || text[..start].ends_with(['&', '%', '#', '='])
        {
            continue;
        }
        let project = match project.split('/').collect::<Vec<_>>()[..] {
            [""] => None,
            [_] => continue,
            _ if project.split('/').any(str::is_empty) => continue,
            _ if project.eq_ignore_ascii_case(&home.project) => None,
            _ => Some(project.to_owned()),
        };
        out.push((
            start,
            closes(text, start),
            Reference::Issue { project, number },
        ));
    }
    for (at, _) in text
        .match_indices("GH-")
        .filter(|(at, _)| is_start(text, *at))
    {
        if let Some((number, end)) = number_at(text, at + 3).filter(|_| home.forge == "github")
            && !goes_on(text, end)
        {
            out.push((
                at,
                closes(text, at),
                Reference::Issue {
                    project: None,
                    number,
                },
            ));
        }
    }
    out.extend(addresses(text, home));
    out
}

/// Returns true if a text ends with words that make the next number that of a pull request:
/// `Merge pull request #12`.
fn names_a_pull_request(before: &str) -> bool {
    let end = before.trim_end().to_ascii_lowercase();
    let mut before_word = ["pull request", "pull", "pr", "merge request", "mr"]
        .iter()
        .filter_map(|word| end.strip_suffix(word));
    before_word.any(|rest| !rest.ends_with(char::is_alphanumeric))
}

/// Finds addresses of issues on the forge.
fn addresses(text: &str, home: &Home) -> Vec<(usize, bool, Reference)> {
    let mut out = Vec::new();
    if home.web.is_empty() {
        return out;
    }
    for (at, _) in text.match_indices(&home.web) {
        let rest = &text[at + home.web.len()..];
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '>' | '"' | '\'' | '?'))
            .unwrap_or(rest.len());
        let path = &rest[..end];
        let found = ["/-/issues/", "/-/work_items/", "/issues/"]
            .iter()
            .find_map(|mark| {
                let (project, number) = path.split_once(mark)?;
                Some((project, number_at(number, 0)?.0))
            });
        let Some((project, number)) = found.filter(|(p, _)| p.contains('/')) else {
            continue;
        };
        let project = (!project.eq_ignore_ascii_case(&home.project)).then(|| project.to_owned());
        out.push((at, closes(text, at), Reference::Issue { project, number }));
    }
    out
}

/// Finds addresses of Confluence pages: `…/spaces/DEV/pages/123/Title`,
/// `…/pages/viewpage.action?pageId=123`.
fn pages(text: &str) -> Vec<(usize, Reference)> {
    let mut out = Vec::new();
    for (at, mark) in text.match_indices("/spaces/") {
        let rest = &text[at + mark.len()..];
        let Some((space, rest)) = rest.split_once("/pages/") else {
            continue;
        };
        let is_space = !space.is_empty()
            && space.len() <= MAX_KEY
            && space
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'~' || b == b'_');
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if is_space && (1..=20).contains(&digits) {
            out.push((
                at,
                Reference::Page {
                    space: Some(space.to_owned()),
                    id: rest[..digits].to_owned(),
                },
            ));
        }
    }
    for (at, mark) in text.match_indices("pageId=") {
        let rest = &text[at + mark.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_page = text[..at].ends_with(['?', '&'])
            && text[..at]
                .rsplit(char::is_whitespace)
                .next()
                .is_some_and(|word| word.contains("viewpage.action"));
        if is_page && (1..=20).contains(&digits) {
            out.push((
                at,
                Reference::Page {
                    space: None,
                    id: rest[..digits].to_owned(),
                },
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn github() -> Home {
        Home {
            forge: "github",
            web: "https://github.com/".to_owned(),
            project: "octo/app".to_owned(),
            has_issues: true,
        }
    }

    fn found(text: &str) -> Vec<String> {
        let texts = ChangeTexts {
            description: text.to_owned(),
            ..ChangeTexts::default()
        };
        let allowed = Allowed::listed(&[]);
        references(&texts, Some(&github()), None, &allowed)
            .iter()
            .map(Reference::to_string)
            .collect()
    }

    #[test]
    fn keys_of_tickets_are_found_wherever_they_stand() {
        for text in [
            "PROJ-12",
            "see PROJ-12.",
            "[PROJ-12] title",
            "PROJ-12: title",
            "(PROJ-12)",
            "https://jira.example/browse/PROJ-12",
            "PROJ-12, and more",
            "`PROJ-12`",
            "fixes PROJ-12",
            "refs/PROJ-12/x",
            "PROJ-12-follow-up",
            "日本PROJ-12",
        ] {
            let expected = if text.starts_with('日') {
                vec![]
            } else {
                vec!["PROJ-12".to_owned()]
            };
            assert_eq!(found(text), expected, "{text}");
        }
        assert_eq!(found("A_B2-7 and AB-1"), ["A_B2-7", "AB-1"]);
    }

    #[test]
    fn standards_versions_and_numbers_are_no_tickets() {
        for text in [
            "UTF-8 UTF-16 SHA-1 SHA-256 ISO-8601 ISO-8859-1 RFC-2119 CVE-2024-1234 CWE-79 AES-256 TLS-1.3 MD-5 IEEE-754",
            "SHA3-256 BLAKE2-256 HS-256 RS-256 X-509 PEP-8 ECMA-262 GPL-3 LGPL-2.1 PKCS-11 H-264 BASE-64 WINDOWS-1252",
            "PROJ-0 PROJ-012 proj-12 PROJ-12a PROJ-12_x PROJ-12-3 aPROJ-12 A-1 -PROJ-12 PROJ-12.5 $PROJ-12 PROJ-99999999",
            "2024-01-02 LATIN-1 UTC-5 GMT-1 KOI8-7 FIPS-140 ADR-7 GHSA-1 STEP-1 PHASE-2 ED-25519 USB-3",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_listed_project_is_a_project_whatever_its_name() {
        let texts = ChangeTexts {
            title: "ADR-7 and UTF-8".to_owned(),
            ..ChangeTexts::default()
        };
        let allowed = Allowed::listed(&["ADR".to_owned()]);
        assert_eq!(
            references(&texts, None, None, &allowed),
            [Reference::Ticket("ADR-7".to_owned())]
        );
    }

    #[test]
    fn issues_of_a_forge_are_found_by_number_keyword_project_and_address() {
        for (text, expected) in [
            ("#12", vec!["#12"]),
            ("fix (#12)", vec!["#12"]),
            ("octo/app#12", vec!["#12"]),
            ("other/lib#3", vec!["other/lib#3"]),
            ("GH-12", vec!["#12"]),
            ("see #7, closes #12", vec!["#12", "#7"]),
            ("Fixes: #12\nResolves #3", vec!["#12", "#3"]),
            ("https://github.com/octo/app/issues/12#comment", vec!["#12"]),
            ("https://github.com/other/lib/issues/4", vec!["other/lib#4"]),
            ("Merge pull request #12 from x, PR #13, pull #14", vec![]),
            ("https://github.com/octo/app/pull/12", vec![]),
            ("https://evil.example/octo/app/issues/12", vec![]),
            ("&#39; #0 #012 #1a2b3c a#5 ##6 #12-3 #99999999999", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        let gitlab = Home {
            forge: "gitlab",
            web: "https://gl.example/git/".to_owned(),
            project: "g/s/p".to_owned(),
            has_issues: true,
        };
        let texts = ChangeTexts {
            description: "https://gl.example/git/g/s/p/-/issues/5 and g/q#6 GH-7".to_owned(),
            ..ChangeTexts::default()
        };
        let all = references(&texts, Some(&gitlab), None, &Allowed::listed(&[]));
        assert_eq!(
            all.iter().map(Reference::to_string).collect::<Vec<_>>(),
            ["#5", "g/q#6"]
        );
        assert_eq!(references(&texts, None, None, &Allowed::listed(&[])), []);
    }

    fn page(space: Option<&str>, id: &str) -> Reference {
        Reference::Page {
            space: space.map(str::to_owned),
            id: id.to_owned(),
        }
    }

    #[test]
    fn pages_are_found_by_their_addresses() {
        let text = "https://acme.example/wiki/spaces/DEV/pages/123/Title and https://c.example/pages/viewpage.action?pageId=45 pageId=6";
        let pages: Vec<_> = pages(text).into_iter().map(|(_, r)| r).collect();
        assert_eq!(pages, [page(Some("DEV"), "123"), page(None, "45")]);
    }

    #[test]
    fn references_come_in_the_order_of_their_worth_without_repeats_and_bounded() {
        let texts = ChangeTexts {
            branch: "feature/OPS-1-and-PROJ-2".to_owned(),
            title: "PROJ-3: x (#9)".to_owned(),
            description: "see PROJ-5; fixes PROJ-4, #9, OPS-1".to_owned(),
            messages: vec!["PROJ-6".to_owned(), "PROJ-3".to_owned()],
            own: Some(9),
        };
        let all = references(&texts, Some(&github()), None, &Allowed::listed(&[]));
        let all: Vec<_> = all.iter().map(Reference::to_string).collect();
        assert_eq!(
            all,
            ["OPS-1", "PROJ-2", "PROJ-3", "PROJ-4", "PROJ-5", "PROJ-6"]
        );
        let many: String = (1..100).map(|n| format!("PROJ-{n} ")).collect();
        assert_eq!(found(&many).len(), MAX_REFERENCES);
    }

    /// Returns the references in the name of a branch.
    fn of_branch(branch: &str) -> Vec<String> {
        let texts = ChangeTexts {
            branch: branch.to_owned(),
            ..ChangeTexts::default()
        };
        let all = references(
            &texts,
            Some(&github()),
            None,
            &Allowed::listed(&["PROJ".to_owned()]),
        );
        all.iter().map(Reference::to_string).collect()
    }

    #[test]
    fn a_branch_in_lower_case_names_a_ticket_of_an_allowed_project() {
        assert_eq!(of_branch("feature/proj-12-retries"), ["PROJ-12"]);
        assert_eq!(of_branch("fix-12"), Vec::<String>::new());
        assert_eq!(of_branch("fix_PROJ-12_x"), Vec::<String>::new());
        assert_eq!(of_branch("fix_PROJ-12-x"), ["PROJ-12"]);
        assert_eq!(of_branch("issue-12-crash"), ["#12"]);
        assert_eq!(of_branch("fix/gh-7"), ["#7"]);
        assert_eq!(of_branch("tissue-12"), Vec::<String>::new());
    }

    #[test]
    fn a_pattern_replaces_the_built_in_one() {
        let pattern = Regex::new(r"\bT(\d+)\b").unwrap();
        let texts = ChangeTexts {
            title: "T123 PROJ-1 T".to_owned(),
            ..ChangeTexts::default()
        };
        let all = references(&texts, None, Some(&pattern), &Allowed::listed(&[]));
        assert_eq!(all, [Reference::Ticket("123".to_owned())]);
    }
}
