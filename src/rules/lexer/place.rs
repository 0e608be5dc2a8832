//! Lexical positions in a file that a rule can search: code, strings, comments.

/// The lexical positions in which a rule's match may start, or the position of a byte.
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
    const NAMES: [(Self, &str); 5] = [
        (Self::Any, "any"),
        (Self::Code, "code"),
        (Self::CodeOrString, "code-or-string"),
        (Self::String, "string"),
        (Self::Comment, "comment"),
    ];

    /// Parses a name from a rule file.
    pub(in crate::rules) fn parse(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(place, _)| *place)
    }

    pub(in crate::rules) fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(place, _)| *place == self)
            .map_or("any", |(_, name)| name)
    }

    /// Returns true if a rule with this place admits a match in `actual`.
    pub(in crate::rules) fn admits(self, actual: Self) -> bool {
        match self {
            Self::Any => true,
            Self::CodeOrString => actual != Self::Comment,
            exact => exact == actual,
        }
    }
}
