//! Doubt about data after a call of code that neither the file nor the tables have.

/// How uncertain it is that a value still has the data of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Doubt {
    /// Only code of the file and functions of the tables processed the data.
    #[default]
    None,
    /// The names of a call state what the code elsewhere is for: it checks or makes addresses, or
    /// it shows a form. A flow to most sinks is a suggestion.
    Stated,
    /// Another unknown function processed the data. Only sinks of text that helpers build are
    /// certain, and the other sinks report nothing but joined text.
    Unknown,
}
