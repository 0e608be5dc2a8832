//! The flags of `fix` that a suggested command repeats, so that it works in the same setup.

use super::super::Context;
use super::FixArgs;
use crate::policy::value::show_duration;
use std::path::PathBuf;

/// The flags of a run of `fix`, apart from the findings and the session.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags {
    pub(super) config: Option<PathBuf>,
    pub(super) backend: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) allow: Vec<String>,
    pub(super) limits: Vec<(&'static str, String)>,
    pub(super) yes: bool,
    pub(super) patch: Option<PathBuf>,
}

impl Flags {
    /// Returns the flags that the user wrote.
    pub(super) fn of(context: &Context, args: &FixArgs) -> Self {
        let limits = [
            ("--timeout", args.timeout.map(show_duration)),
            ("--max-cost", args.max_cost.map(|usd| usd.to_string())),
            ("--max-tokens", args.max_tokens.map(|n| n.to_string())),
            ("--max-requests", args.max_requests.map(|n| n.to_string())),
        ];
        Self {
            config: context.global.config.clone(),
            backend: args.backend.clone(),
            model: args.model.clone(),
            allow: args.allow.clone(),
            limits: limits
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
            yes: args.yes,
            patch: args.patch.clone(),
        }
    }

    /// Returns the words of a command line, not quoted.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut put = |name: &str, value: String| words.extend([name.to_owned(), value]);
        self.config
            .iter()
            .for_each(|file| put("--config", file.display().to_string()));
        self.backend
            .iter()
            .for_each(|name| put("--backend", name.clone()));
        self.model
            .iter()
            .for_each(|name| put("--model", name.clone()));
        self.allow
            .iter()
            .for_each(|path| put("--allow", path.clone()));
        self.limits
            .iter()
            .for_each(|(name, value)| put(name, value.clone()));
        self.patch
            .iter()
            .for_each(|file| put("--patch", file.display().to_string()));
        if self.yes {
            words.push("--yes".to_owned());
        }
        words
    }
}
