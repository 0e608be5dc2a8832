//! Waivers as the command line and `CLAUDE_REVIEWER_WAIVE` spell them: `FINGERPRINT=REASON`.

use crate::env::Env;
use crate::error::{Error, Result};

/// The least digits of a fingerprint. Whoever writes a change chooses path and quote, and so could try until the
/// first digits of another finding's fingerprint come out: 8 take an hour, 16 take longer than the change lives.
const DIGITS_MIN: usize = 16;
/// The digits of a whole fingerprint.
const DIGITS_MAX: usize = 32;

/// A person's word that lets a finding through.
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
    /// Usage: no fingerprint, or no reason.
    pub fn parse(text: &str) -> Result<Self> {
        let (fingerprint, reason) = text.split_once('=').unwrap_or((text, ""));
        let (fingerprint, reason) = (fingerprint.trim().to_ascii_lowercase(), reason.trim());
        let hint = "write: --waive FINGERPRINT=REASON, with a fingerprint from the report";
        if !(DIGITS_MIN..=DIGITS_MAX).contains(&fingerprint.len())
            || !fingerprint.bytes().all(|b| b.is_ascii_hexdigit())
        {
            let what = format!("waiver {text:?} has no fingerprint of {DIGITS_MIN} to {DIGITS_MAX} hexadecimal digits");
            return Err(Error::usage(what).hint_person(hint));
        }
        if reason.is_empty() {
            return Err(Error::usage(format!("waiver of {fingerprint} has no reason")).hint_person(hint));
        }
        Ok(Self { fingerprint, reason: reason.to_owned() })
    }

    /// Tells whether a finding with this fingerprint is meant.
    pub fn covers(&self, fingerprint: &str) -> bool {
        fingerprint.starts_with(&self.fingerprint)
    }
}

/// Gathers the waivers of the command line and of `CLAUDE_REVIEWER_WAIVE`, where each stands on a line of its own
/// or after a `;`.
///
/// # Errors
///
/// Usage: one that cannot be read. None is left out silently.
pub fn waivers(flags: &[String], env: &Env) -> Result<Vec<Waive>> {
    let mut all = flags.iter().map(|f| Waive::parse(f)).collect::<Result<Vec<_>>>()?;
    if let Some(raw) = env.os("CLAUDE_REVIEWER_WAIVE") {
        let Some(text) = raw.to_str() else {
            return Err(Error::usage("environment variable CLAUDE_REVIEWER_WAIVE is not UTF-8"));
        };
        for one in text.split(['\n', ';']).map(str::trim).filter(|s| !s.is_empty()) {
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
            [("CLAUDE_REVIEWER_WAIVE", "0123456789abcdef01=sample; in docs\n ABCDEF0123456789=known = fine ;\n")],
        );
        // A reason cannot hold a `;` in the variable: what follows it has to be a waiver.
        assert!(waivers(&[], &env).is_err());
        let env = Env::from_pairs(
            "/".into(),
            [("CLAUDE_REVIEWER_WAIVE", "0123456789abcdef01=a sample\nABCDEF0123456789=known = fine;")],
        );
        let all = waivers(&["ffffffffffffffff=flag".to_owned()], &env).unwrap();
        let shown: Vec<_> = all.iter().map(|w| (w.fingerprint.as_str(), w.reason.as_str())).collect();
        assert_eq!(
            shown,
            [("ffffffffffffffff", "flag"), ("0123456789abcdef01", "a sample"), ("abcdef0123456789", "known = fine"),]
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
