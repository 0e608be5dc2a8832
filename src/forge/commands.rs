//! Commands in replies to comments on findings: `/accept`, `/reject REASON`,
//! `/defer DATE [REASON]`. Pure.
//!
//! A reply waives a finding for one head. It counts only if its author, its time, its parent
//! comment and its finding are known and valid. Other replies are rejected, with a reason to
//! display.

use super::mark::{CommentMark, MarkSubject};
use super::publish::shows;
use super::{Account, PullRequest};
use crate::finding::{Finding, Severity};
use crate::report::markdown::Flavor;
use crate::text::{first_chars, one_line};
use jiff::Timestamp;
use jiff::civil::Date;

/// Characters of a reason, at most.
const MOST_OF_A_REASON: usize = 300;
/// Letters of a command name, at most.
const MOST_OF_A_NAME: usize = 20;

/// The decision of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    Accept,
    /// With a reason, which is untrusted text.
    Reject(String),
    /// With the first day on which it no longer applies, and a reason that may be empty.
    Defer(Date, String),
}

/// A command of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyCommand {
    pub order: Directive,
    /// Full ID of the head in the command, in lowercase.
    pub head: Option<String>,
}

/// The commands of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commanded {
    None,
    One(ReplyCommand),
    /// A command that does not count, for this reason.
    Bad(String),
}

/// A reply in a conversation about lines. All text in it is untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentReply {
    pub author: Account,
    /// Whether the forge reports that a person wrote it, not an app, a bot or a service.
    pub is_person: bool,
    pub body: String,
    /// Address of its page.
    pub link: String,
    /// `None` if the forge does not report the time.
    pub written: Option<Timestamp>,
    /// False only if the forge shows that it is unmodified.
    pub is_edited: bool,
    /// First comment of the conversation.
    pub root: FirstComment,
}

/// The first comment of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstComment {
    pub author: Account,
    pub body: String,
    /// Time of the last change to its text; `None` if there was none.
    pub changed: Option<Timestamp>,
}

/// Returns the time of a text's last change from its creation and update times, for forges that
/// report both for every text. Returns `None` if the text was never changed.
pub(super) fn changed_since(
    begun: Option<Timestamp>,
    changed: Option<Timestamp>,
) -> Option<Timestamp> {
    match (begun, changed) {
        (Some(begun), Some(changed)) if begun == changed => None,
        // Without an update time, it may have changed at any moment.
        (_, changed) => changed.or(Some(Timestamp::MAX)),
    }
}

/// The authors of a pull request: the account that opened it, and the authors, committers and
/// co-authors of its commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authors {
    pub accounts: Vec<Account>,
    /// Reason why some of them are unknown.
    pub unknown: Option<String>,
}

impl Authors {
    /// Adds an account. If it is unknown, `what` describes it.
    pub fn add(&mut self, account: Option<Account>, what: impl FnOnce() -> String) {
        match account.filter(|a| !a.id.is_empty()) {
            Some(account) => self.accounts.push(account),
            None => {
                self.unknown.get_or_insert_with(what);
            }
        }
    }
}

/// The current rights of an account in the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Maintainer or administrator.
    Maintains,
    /// The account may not waive, for this reason.
    Lacks(String),
}

/// Finds the command of a reply.
///
/// A command is a line that starts with `/` and a word of letters. Quotes, code blocks and code
/// spans hold no commands.
pub fn find(body: &str, today: Date) -> Commanded {
    let mut fence: Option<&str> = None;
    let (mut lines, mut is_quoted) = (Vec::new(), false);
    for line in body.lines() {
        let bare = line.trim_start();
        let is_indented = line.starts_with('\t') || line.len() - bare.len() >= 4;
        let marker = ["```", "~~~"].into_iter().find(|f| bare.starts_with(f));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            _ if fence.is_some() || is_indented || bare.starts_with(['>', '`']) => {
                is_quoted |= name(bare.trim_start_matches(['>', '`', ' '])).is_some_and(is_known);
            }
            _ if name(bare).is_some() => lines.push(bare),
            _ => {}
        }
    }
    match lines.as_slice() {
        [] if is_quoted => {
            Commanded::Bad("a command in a quote or a code block does not count".to_owned())
        }
        [] => Commanded::None,
        [line] => command(line, today).map_or_else(Commanded::Bad, Commanded::One),
        _ => Commanded::Bad("it has several commands".to_owned()),
    }
}

/// Returns the name of the command that a line starts with.
fn name(line: &str) -> Option<&str> {
    let word = line.strip_prefix('/')?.split_whitespace().next()?;
    let is_name = word.len() <= MOST_OF_A_NAME
        && word
            .bytes()
            .all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_');
    // `/ word` has a space after the slash.
    (is_name && line[1..].starts_with(word)).then_some(word)
}

fn is_known(name: &str) -> bool {
    matches!(name, "accept" | "reject" | "defer")
}

fn command(line: &str, today: Date) -> Result<ReplyCommand, String> {
    let name = name(line).unwrap_or_default();
    let rest = line.get(1 + name.len()..).unwrap_or_default().trim();
    let (head, rest) = match rest
        .split_once(char::is_whitespace)
        .map_or((rest, ""), |(a, b)| (a, b.trim()))
    {
        (word, rest) if is_object_id(word) => (Some(word.to_ascii_lowercase()), rest),
        _ => (None, rest),
    };
    let order = match name {
        "accept" => Directive::Accept,
        "reject" if rest.is_empty() => return Err("it gives no reason: /reject REASON".to_owned()),
        "reject" => Directive::Reject(short(rest)),
        "defer" => {
            let (date, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let date: Date = date
                .parse()
                .map_err(|_| "it names no date: /defer YYYY-MM-DD REASON".to_owned())?;
            if date <= today {
                return Err(format!("its date {date} is not in the future"));
            }
            Directive::Defer(date, short(reason))
        }
        other => {
            return Err(format!(
                "/{other} is not a known command: use /accept, /reject or /defer"
            ));
        }
    };
    Ok(ReplyCommand { order, head })
}

/// Returns true for a full object ID. A prefix is not a proof: a commit whose ID has a given prefix
/// can be forged.
fn is_object_id(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|b| b.is_ascii_hexdigit())
}

fn short(text: &str) -> String {
    first_chars(&one_line(text), MOST_OF_A_REASON).to_owned()
}

/// The review and the pull request that replies are checked against.
#[derive(Clone, Copy, Debug)]
pub struct ReplyContext<'a> {
    pub pull: &'a PullRequest,
    /// Account of the token.
    pub me: &'a Account,
    pub flavor: Flavor,
    pub findings: &'a [Finding],
}

/// Returns the finding that a reply is about.
///
/// # Errors
/// The reason why the reply does not count.
pub fn finding_of<'a>(
    reply: &CommentReply,
    known: &ReplyContext<'a>,
) -> Result<&'a Finding, String> {
    if !reply.root.author.is(known.me) {
        return Err("the comment above it was written by another account".to_owned());
    }
    let about = CommentMark::read(&reply.root.body).map(|mark| mark.about);
    let Some(MarkSubject::Finding {
        fingerprint, ended, ..
    }) = about
    else {
        return Err("the comment above it is not about a finding".to_owned());
    };
    if ended {
        return Err("the comment above it says that the finding no longer counts".to_owned());
    }
    if !reply.is_person {
        return Err(
            "it was not written by a person: apps, bots and services cannot waive".to_owned(),
        );
    }
    if reply.is_edited {
        return Err("it was edited, or the forge does not show that it was not".to_owned());
    }
    let Some(written) = reply.written else {
        return Err("the forge does not say when it was written".to_owned());
    };
    if reply.root.changed.is_some_and(|changed| changed >= written) {
        return Err("the comment above it has changed since".to_owned());
    }
    let mut found = known
        .findings
        .iter()
        .filter(|f| f.fingerprint().as_str() == fingerprint);
    let finding = found
        .next()
        .ok_or("its finding was not found in this review")?;
    if found.next().is_some() {
        return Err("several findings have the fingerprint of its comment".to_owned());
    }
    if !shows(finding, known.flavor, &reply.root.body) {
        return Err("the comment above it does not show the finding as it is now".to_owned());
    }
    Ok(finding)
}

/// Checks that a command may apply to a finding.
///
/// # Errors
/// The reason why the reply does not count.
pub fn may_waive(command: &ReplyCommand, finding: &Finding) -> Result<(), String> {
    if finding.severity() == Severity::Critical && command.order != Directive::Accept {
        return Err("a critical finding is not waived by a reply".to_owned());
    }
    Ok(())
}

/// Checks that a reply is about the head under review. `pushed` is the time of the head's push, if
/// the forge reports it.
///
/// # Errors
/// The reason why the reply does not count.
pub fn of_head(
    reply: &CommentReply,
    command: &ReplyCommand,
    head: &str,
    pushed: Option<Timestamp>,
) -> Result<(), String> {
    match (&command.head, pushed, reply.written) {
        (Some(named), ..) if named == head => Ok(()),
        (Some(_), ..) => Err("it names another commit than the head".to_owned()),
        (None, Some(pushed), Some(written)) if written > pushed => Ok(()),
        (None, Some(_), _) => Err("it is older than the push of the head".to_owned()),
        (None, None, _) => {
            Err("the forge does not say when the head was pushed: name the full ID of the head behind the command"
                .to_owned())
        }
    }
}

/// Checks that the author of a reply is not an author of the change.
///
/// # Errors
/// The reason why the reply does not count.
pub fn by_another(reply: &CommentReply, authors: &Authors) -> Result<(), String> {
    if authors.accounts.iter().any(|a| a.is(&reply.author)) {
        return Err("its author is an author of the change".to_owned());
    }
    match &authors.unknown {
        Some(why) => Err(format!("not all authors of the change are known: {why}")),
        None => Ok(()),
    }
}

/// Returns the email addresses of the co-authors in a commit message, or `None` if a trailer has no
/// address.
pub fn co_authors(message: &str) -> Option<Vec<String>> {
    const TRAILER: &str = "co-authored-by:";
    let lines = message.lines().map(str::trim);
    lines
        .filter(|line| {
            line.get(..TRAILER.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(TRAILER))
        })
        .map(address_in)
        .collect()
}

/// Returns the email address of `Name <address>`, in lowercase.
pub fn address_in(text: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once('<')?;
    let (address, _) = rest.split_once('>')?;
    Some(address.trim().to_ascii_lowercase()).filter(|a| a.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::{Commanded, Directive, ReplyCommand, address_in, co_authors, find};
    use jiff::civil::{Date, date};

    const TODAY: Date = date(2026, 11, 24);

    fn order(body: &str) -> Option<Directive> {
        match find(body, TODAY) {
            Commanded::One(command) => Some(command.order),
            Commanded::None | Commanded::Bad(_) => None,
        }
    }

    #[test]
    fn a_command_is_a_line_of_its_own() {
        assert_eq!(order("/accept"), Some(Directive::Accept));
        assert_eq!(
            order("I agree.\r\n\r\n/accept\r\n"),
            Some(Directive::Accept)
        );
        assert_eq!(
            order("/reject  it is\ta demo "),
            Some(Directive::Reject("it is a demo".to_owned()))
        );
        assert_eq!(
            order("/defer 2026-11-25"),
            Some(Directive::Defer(date(2026, 11, 25), String::new()))
        );
        assert_eq!(
            order("/defer 2027-01-31 next year"),
            Some(Directive::Defer(date(2027, 1, 31), "next year".to_owned()))
        );
        for none in [
            "",
            "no",
            "see /reject x",
            "/usr/bin/reject x",
            "//reject x",
            "/ reject x",
            "/",
            "/reject/x y",
        ] {
            assert_eq!(find(none, TODAY), Commanded::None, "{none}");
        }
    }

    #[test]
    fn what_is_no_clear_command_is_refused() {
        for (body, why) in [
            ("/reject", "no reason"),
            ("/reject   ", "no reason"),
            ("/reject a\n/accept", "several"),
            ("/reject a\n/reject a", "several"),
            ("/reject a\n/label ~bug", "several"),
            ("/approve", "/approve is not a known"),
            ("/REJECT x", "/REJECT is not a known"),
            ("/defer", "no date"),
            ("/defer tomorrow", "no date"),
            ("/defer 2026-11-24 today", "not in the future"),
            ("/defer 2020-01-01", "not in the future"),
            ("> /reject a", "quote"),
            ("> > /reject a", "quote"),
            (">/accept\nno", "quote"),
            ("```\n/reject a\n```", "quote"),
            ("~~~ text\n/reject a\n```\n~~~", "quote"),
            ("```\n/reject a", "quote"),
            ("    /reject a", "quote"),
            ("\t/reject a", "quote"),
            ("`/reject a`", "quote"),
        ] {
            match find(body, TODAY) {
                Commanded::Bad(reason) => assert!(reason.contains(why), "{body}: {reason}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        // A command below a quote counts.
        assert_eq!(order("> /reject a\n\n/accept"), Some(Directive::Accept));
    }

    #[test]
    fn only_the_full_id_names_a_head() {
        let id = "0123456789ABCDEF0123456789abcdef01234567";
        let found = find(&format!("/reject {id} a demo"), TODAY);
        let order = Directive::Reject("a demo".to_owned());
        assert_eq!(
            found,
            Commanded::One(ReplyCommand {
                order,
                head: Some(id.to_ascii_lowercase())
            })
        );
        let Commanded::One(short) = find(&format!("/reject {} a demo", &id[..39]), TODAY) else {
            panic!()
        };
        assert_eq!(short.head, None);
        let Commanded::One(defer) = find(&format!("/defer {id} 2027-01-01"), TODAY) else {
            panic!()
        };
        assert!(defer.head.is_some() && matches!(defer.order, Directive::Defer(..)));
    }

    #[test]
    fn co_authors_are_read_from_any_line() {
        let message = "Change\n\nCo-authored-by: A B <a@example.com>\nCO-AUTHORED-BY: C <C@Example.com>\n\nmore";
        assert_eq!(
            co_authors(message),
            Some(vec!["a@example.com".to_owned(), "c@example.com".to_owned()])
        );
        assert_eq!(co_authors("co-authored-by: A B"), None);
        assert_eq!(co_authors("by\u{e9}: x <y@z>"), Some(Vec::new()));
        assert_eq!(address_in("A <B> <c@d>"), Some("c@d".to_owned()));
    }
}
