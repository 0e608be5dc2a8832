//! The values of `--format`: how a command prints its result.

use crate::report::ReportFormat;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// How a command prints a result that is not the report of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Human,
    Json,
}

/// As [`Format`], for results that are also printed as a file to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    Human,
    Json,
    Toml,
}

impl Format {
    /// Returns the parser of the option. `human` and `json` describe the two values in the help.
    pub(super) fn parser(
        human: &'static str,
        json: &'static str,
    ) -> impl TypedValueParser<Value = Self> {
        named([("human", human, Self::Human), ("json", json, Self::Json)])
    }
}

impl FileFormat {
    /// Returns the parser of the option. The arguments describe the values in the help.
    pub(super) fn parser(
        human: &'static str,
        json: &'static str,
        toml: &'static str,
    ) -> impl TypedValueParser<Value = Self> {
        named([
            ("human", human, Self::Human),
            ("json", json, Self::Json),
            ("toml", toml, Self::Toml),
        ])
    }
}

/// Returns the parser of the format of a report. The help lists the formats of the same table.
pub(super) fn report() -> impl TypedValueParser<Value = ReportFormat> {
    named(ReportFormat::ALL.map(|f| (f.name(), f.help(), f)))
}

/// Parses one of these names. Each entry is a name, its description in the help, and its value.
fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = values.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names).try_map(move |given| {
        let found = values.iter().find(|(name, ..)| *name == given);
        found
            .map(|(.., value)| *value)
            .ok_or_else(|| format!("unknown format {given}"))
    })
}
