//! Parses waivers of the command line and of `CLAUDE_REVIEWER_WAIVE`: `FINGERPRINT=REASON`.

use crate::env::Env;
use crate::error::{Error, Result};

/// The least number of digits of a fingerprint. The author of a change chooses path and quote, and
/// could search for values whose fingerprint starts like that of a waived finding. 8 digits take an
/// hour; 16 take too long.
const DIGITS_MIN: usize = 16;
/// The number of digits of a complete fingerprint.
const DIGITS_MAX: usize = 32;

/// A waiver: a person accepts a finding for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waive {
    /// The fingerprint, or at least its first [`DIGITS_MIN`] digits; lower case.
    pub fingerprint: String,
    pub reason: String,
}

impl Waive {
    /// Parses `FINGERPRINT=REASON`.
    ///
    /// # Errors
    ///
    /// Usage: the fingerprint or the reason is missing or invalid.
    pub fn parse(text: &str) -> Result<Self> {
        let (fingerprint, reason) = text.split_once('=').unwrap_or((text, ""));
        let (fingerprint, reason) = (fingerprint.trim().to_ascii_lowercase(), reason.trim());
        let hint = "write --waive \"FINGERPRINT=REASON\" with a fingerprint from the report";
        if !(DIGITS_MIN..=DIGITS_MAX).contains(&fingerprint.len())
            || !fingerprint.bytes().all(|b| b.is_ascii_hexdigit())
        {
            let what = format!(
                "invalid waiver {text:?}: expected a fingerprint of {DIGITS_MIN} to {DIGITS_MAX} hexadecimal digits"
            );
            return Err(Error::usage(what).hint_person(hint));
        }
        if reason.is_empty() {
            return Err(
                Error::usage(format!("waiver of {fingerprint} has no reason")).hint_person(hint),
            );
        }
        Ok(Self {
            fingerprint,
            reason: reason.to_owned(),
        })
    }

    /// Returns true if the waiver covers a finding with this fingerprint.
    pub fn covers(&self, fingerprint: &str) -> bool {
        fingerprint.starts_with(&self.fingerprint)
    }
}

/// Collects the waivers of the command line and of `CLAUDE_REVIEWER_WAIVE`. The variable has one
/// waiver per line, or several separated by `;`.
///
/// # Errors
///
/// Usage: a waiver is invalid. Invalid waivers are never skipped.
pub fn waivers(flags: &[String], env: &Env) -> Result<Vec<Waive>> {
    let mut all = flags
        .iter()
        .map(|f| Waive::parse(f))
        .collect::<Result<Vec<_>>>()?;
    if let Some(raw) = env.os("CLAUDE_REVIEWER_WAIVE") {
        let Some(text) = raw.to_str() else {
            return Err(Error::usage(
                "environment variable CLAUDE_REVIEWER_WAIVE is not UTF-8",
            ));
        };
        for one in text
            .split(['\n', ';'])
            .map(str::trim)
            .filter(|s| !s.is_empty())
        {
            all.push(Waive::parse(one)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waivers_come_from_flags_and_the_environment() {
        let env = Env::from_pairs(
            "/".into(),
            [(
                "CLAUDE_REVIEWER_WAIVE",
                "0123456789abcdef01=sample; in docs\n ABCDEF0123456789=known = fine ;\n",
            )],
        );
        // A reason in the variable cannot contain `;`: the text after it must be a waiver.
        assert!(waivers(&[], &env).is_err());
        let env = Env::from_pairs(
            "/".into(),
            [(
                "CLAUDE_REVIEWER_WAIVE",
                "0123456789abcdef01=a sample\nABCDEF0123456789=known = fine;",
            )],
        );
        let all = waivers(&["ffffffffffffffff=flag".to_owned()], &env).unwrap();
        let shown: Vec<_> = all
            .iter()
            .map(|w| (w.fingerprint.as_str(), w.reason.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("ffffffffffffffff", "flag"),
                ("0123456789abcdef01", "a sample"),
                ("abcdef0123456789", "known = fine"),
            ]
        );
        assert!(all[1].covers("0123456789abcdef0123456789abcdef"));
    }

    #[test]
    fn a_waiver_needs_a_fingerprint_and_a_reason() {
        for bad in [
            "",
            "abc=short",
            "0123456789abcde=one digit short",
            "0123456789abcdef",
            "0123456789abcdef=",
            "0123456789abcdef=  ",
            "xyz3456789abcdef=reason",
            "0123456789abcdef0123456789abcdef0=one too many",
        ] {
            assert!(Waive::parse(bad).is_err(), "{bad}");
        }
    }
}
