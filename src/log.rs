//! Diagnostic events on standard error: the phases of a review with their times, skipped files,
//! requests.
//!
//! Modules emit [`tracing`] events; without a subscriber an event costs one atomic load. Only
//! events of this crate are printed: HTTP libraries put headers into theirs. Events carry sizes,
//! names and times, never the content of a change, a prompt or a reply, and text from outside
//! passes through [`crate::untrusted::Inert`].

use crate::env::Env;
use crate::error::{Error, Result};
use std::time::Instant;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::time::Uptime;
use tracing_subscriber::prelude::*;

/// The variable that selects events. It overrides `-v`.
const VARIABLE: &str = "CLAUDE_REVIEWER_LOG";

/// The prefix of every event's target.
const CRATE: &str = env!("CARGO_CRATE_NAME");

/// Starts printing events on request: `-vv` selects `debug`, `-vvv` selects `trace`, and
/// `CLAUDE_REVIEWER_LOG` takes a level (`debug`) or levels by module (`http=trace,git=debug`).
///
/// # Errors
/// Usage: the variable has another form.
pub fn start(env: &Env, verbose: u8) -> Result<()> {
    let targets = match (env.var(VARIABLE), verbose) {
        (Some(filter), _) => parse(filter)?,
        (None, 0 | 1) => return Ok(()),
        (None, 2) => Targets::new().with_target(CRATE, Level::DEBUG),
        (None, _) => Targets::new().with_target(CRATE, Level::TRACE),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_timer(Uptime::default())
        .with_ansi(false)
        .with_thread_ids(false);
    // A second call (a test that calls `main` twice in a process) keeps the first subscriber.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .try_init();
    Ok(())
}

/// Parses the value of `CLAUDE_REVIEWER_LOG`. Modules are named relative to the crate.
fn parse(filter: &str) -> Result<Targets> {
    let mut targets = Targets::new();
    for part in filter.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (module, level) = part
            .split_once('=')
            .map_or((None, part), |(module, level)| (Some(module.trim()), level));
        let level = level.trim();
        // The library accepts an empty level as `error`.
        let parsed: Option<LevelFilter> = if level.is_empty() {
            None
        } else {
            level.parse().ok()
        };
        let level = parsed.ok_or_else(|| invalid(filter, level))?;
        let target = match module {
            None => CRATE.to_owned(),
            Some(module) if is_module(module) => format!("{CRATE}::{module}"),
            Some(module) => return Err(invalid(filter, module)),
        };
        targets = targets.with_target(target, level);
    }
    Ok(targets)
}

/// Returns true for a path of modules such as `review::scan`.
fn is_module(name: &str) -> bool {
    name.split("::").all(|word| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// Returns the error about a part of the filter.
fn invalid(filter: &str, part: &str) -> Error {
    Error::usage(format!("invalid {VARIABLE}={filter}: expected a level or MODULE=LEVEL, got {part}")).hint(format!(
        "levels: off, error, warn, info, debug, trace; for example {VARIABLE}=debug or {VARIABLE}=http=trace"
    ))
}

/// Measures consecutive phases of a review.
#[derive(Debug)]
pub struct Phases(Instant);

impl Phases {
    /// Starts the first phase.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Emits the time of the phase that ends here, and starts the next one.
    pub fn end(&mut self, phase: &'static str) {
        let now = Instant::now();
        // These are phases of a review, but the default target of an event is the module that emits
        // it.
        tracing::debug!(target: "claude_reviewer::review", phase, ms = millis(self.0, now), "phase ended");
        self.0 = now;
    }
}

/// Returns the milliseconds between two times, with microseconds as the fraction.
pub fn millis(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_on(filter: &str, target: &str, level: Level) -> bool {
        parse(filter).unwrap().would_enable(target, &level)
    }

    #[test]
    fn a_level_selects_events_of_this_crate_only() {
        assert!(is_on("debug", "claude_reviewer::http", Level::DEBUG));
        assert!(!is_on("debug", "claude_reviewer::http", Level::TRACE));
        assert!(!is_on("trace", "h2::codec", Level::ERROR));
        assert!(!is_on("trace", "hyper", Level::INFO));
    }

    #[test]
    fn a_module_has_a_level_of_its_own() {
        let filter = "info, http=trace ,review::scan=debug";
        assert!(is_on(filter, "claude_reviewer::http", Level::TRACE));
        assert!(is_on(filter, "claude_reviewer::review::scan", Level::DEBUG));
        assert!(!is_on(filter, "claude_reviewer::review", Level::DEBUG));
        assert!(!is_on(
            "http=trace",
            "claude_reviewer::review",
            Level::ERROR
        ));
        assert!(!is_on("off", "claude_reviewer::review", Level::ERROR));
    }

    #[test]
    fn an_invalid_filter_names_its_part() {
        for (filter, part) in [
            ("loud", "loud"),
            ("http=", "got "),
            ("h2.codec=trace", "h2.codec"),
            ("=debug", "got "),
        ] {
            let error = parse(filter).unwrap_err();
            assert!(
                error.message.contains(part) && !error.hints.is_empty(),
                "{filter}: {error:?}"
            );
        }
    }
}
