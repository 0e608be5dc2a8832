//! Texts of a table entry that replace the texts of its rule in the finding, and the highest
//! severity of the finding.

/// Words of rules whose own texts fit none of their calls: each call must have a title, a message
/// and a suggestion.
const GENERIC: [&str; 1] = ["correctness"];

/// Severities that can replace the higher severity of the rule.
const LOWER: [&str; 3] = ["major", "minor", "suggestion"];

/// The texts of a sink or call.
pub(super) struct WrittenTexts<'a> {
    /// The kind or the rule.
    pub(super) word: &'a str,
    /// The first pattern.
    pub(super) name: Option<&'a String>,
    pub(super) title: Option<&'a str>,
    pub(super) message: Option<&'a str>,
    pub(super) suggestion: Option<&'a str>,
    pub(super) severity: Option<&'a str>,
}

impl WrittenTexts<'_> {
    /// Returns the errors in the texts and the severity.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut out = Vec::new();
        let name = self.name.map_or("", String::as_str);
        let texts = [
            ("title", self.title),
            ("message", self.message),
            ("suggestion", self.suggestion),
        ];
        for (field, text) in texts {
            if text.is_some_and(|t| t.trim() != t || t.is_empty()) {
                out.push(format!(
                    "{name:?}: {field} is empty or has spaces around it"
                ));
            }
            if text.is_some_and(|t| t.ends_with('.') == (field == "title")) {
                out.push(format!(
                    "{name:?}: {field}: only messages and suggestions end with a full stop"
                ));
            }
            if GENERIC.contains(&self.word) && text.is_none() {
                out.push(format!(
                    "{name:?}: {field}: missing, and that of the rule does not say what is wrong"
                ));
            }
        }
        if self.message.is_some() != self.suggestion.is_some() {
            out.push(format!("{name:?}: message and suggestion belong together"));
        }
        if self.severity.is_some_and(|s| !LOWER.contains(&s)) {
            out.push(format!("{name:?}: severity: not one of {LOWER:?}"));
        }
        out
    }

    /// Returns the texts as a Rust value.
    pub(super) fn written(&self) -> String {
        let severity = match self.severity {
            None => "None",
            Some("suggestion") => "Some(Severity::Suggestion)",
            Some("minor") => "Some(Severity::Minor)",
            Some(_) => "Some(Severity::Major)",
        };
        let (title, message, suggestion) = (self.title, self.message, self.suggestion);
        format!(
            "EntryTexts {{ title: {title:?}, message: {message:?}, suggestion: {suggestion:?}, severity_max: {severity} }}"
        )
    }
}
