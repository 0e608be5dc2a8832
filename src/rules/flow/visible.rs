//! Calls that show a danger by themselves, although the value comes from the caller of an ordinary function.
//!
//! A statement that quotes a value by hand is wrong for every text with a quote, wherever the text comes from. A pointer
//! that is the format of `printf`, or a parser that resolves external entities, is wrong for every input. Such findings stay
//! suggestions, with medium confidence.

use super::Kind;
use super::run::Run;
use super::sink::At;
use super::value::Taint;

/// A value of an SQL condition or of `VALUES`: a placeholder could be there. Names of tables and columns are not values.
const SQL_VALUE: &str = r#"(?i)(?:[=<>]|\b(?:like|values\s*\((?:[^()]|\([^()]*\))*|in\s*\((?:[^()]|\([^()]*\))*)['"])\s*['"]?%?\x{fffc}|\blike\s+\S?%?\x{fffc}|'%?\x{fffc}%?'"#;
/// A command whose program is written, and whose arguments are joined to it.
const COMMAND_ARGUMENT: &str = r#"^\s*["']?[\w./~-]+["']?\s[^\x{fffc}]*\x{fffc}"#;
/// A value of a filter or of a predicate.
const COMPARED: &str = r#"[=~]\s*['"]?\*?\x{fffc}"#;

impl Run<'_> {
    /// Returns true if a call shows that data of unknown origin does harm there.
    pub(super) fn shows_danger(&mut self, kind: Kind, at: &At<'_>, taint: &Taint) -> bool {
        if taint.is_doubted {
            return false;
        }
        let text = at.text.filter(|_| taint.is_built).unwrap_or_default();
        match kind {
            Kind::Sql => self.fits(SQL_VALUE, text),
            Kind::Command => self.fits(COMMAND_ARGUMENT, text),
            Kind::Ldap | Kind::XPath => self.fits(COMPARED, text),
            Kind::Code | Kind::Deserialization | Kind::Xml => !at.is_wild,
            Kind::Format => !at.is_wild && !taint.is_built,
            _ => false,
        }
    }
}
