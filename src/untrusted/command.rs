//! Workflow commands of GitHub Actions: `::name key=value,…::data`.

use super::Inert;

/// Escapes text for the data of a command, on one line: the reader of the command sees the original
/// lines.
///
/// Escapes percent signs and line ends in the way that the runner decodes (`ActionCommand.cs` of
/// actions/runner).
pub fn data(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(|l| Inert::new(l).as_str().replace('%', "%25"))
        .collect();
    lines.join("%0A")
}

/// Escapes text for a property of a command, which ends at a comma or at colons. Line ends become
/// visible escapes.
pub fn property(text: impl AsRef<[u8]>) -> String {
    Inert::new(text)
        .as_str()
        .replace('%', "%25")
        .replace(':', "%3A")
        .replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inj_12_data_cannot_end_its_line() {
        for (text, escaped) in [
            ("plain: a, b", "plain: a, b"),
            ("x\n::stop-commands::t", "x%0A::stop-commands::t"),
            ("x\r\ny\rz", "x%0Ay\\rz"),
            ("100%0A::error::y", "100%250A::error::y"),
            ("##[error]y\x1b[2J", "##\\x5berror]y\\x1b[2J"),
        ] {
            assert_eq!(data(text), escaped);
        }
    }

    #[test]
    fn inj_11_a_property_cannot_end_early() {
        for (text, escaped) in [
            ("src/a.rs", "src/a.rs"),
            ("a,line=1::b", "a%2Cline=1%3A%3Ab"),
            ("a%0A::set-output", "a%250A%3A%3Aset-output"),
            ("a\nb", "a\\nb"),
        ] {
            assert_eq!(property(text), escaped);
        }
        assert_eq!(property(b"caf\xe9"), "caf\\xe9");
    }
}
