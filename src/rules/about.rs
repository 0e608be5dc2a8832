//! What reports say of a built-in rule beyond its findings.

use super::catalog;

/// The parts of a rule that explain it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) why: Option<&'static str>,
    /// Code that the rule finds, and code to write instead. Not for secrets: an example would be found by
    /// everybody else's scanner.
    pub(crate) bad: Option<&'static str>,
    pub(crate) good: Option<&'static str>,
}

/// Returns what is known of a rule; `None` for a team's own, or none of ours.
pub(crate) fn about(id: &str) -> Option<About> {
    let rule = catalog::RULES.iter().find(|r| r.id == id)?;
    let code = |text: &'static Option<std::borrow::Cow<'static, str>>| text.as_deref().filter(|_| !rule.secret);
    Some(About { why: rule.why.as_deref(), bad: code(&rule.bad), good: code(&rule.good) })
}
