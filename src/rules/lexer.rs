//! Where a byte of a file stands: in code, in a string or in a comment.

/// Where a rule's match may stand, or where a byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Any,
    Code,
    /// Not in a comment.
    CodeOrString,
    String,
    Comment,
}

impl Place {
    /// Parses a name of a rule file.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "any" => Self::Any,
            "code" => Self::Code,
            "code-or-string" => Self::CodeOrString,
            "string" => Self::String,
            "comment" => Self::Comment,
            _ => return None,
        })
    }
}
