//! Known prices of models, for providers that report no cost.

use crate::policy::{BackendKind, Price};
use serde::Deserialize;
use std::sync::LazyLock;

const PRICES: &str = include_str!("price/prices.toml");

/// The prices of one provider.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vendor {
    /// Kind of its backend.
    kind: String,
    /// Date of the prices, such as `2026-10-10`.
    date: String,
    source: String,
    /// Price of requests in batches, as a share of the ordinary price, and its source.
    batch: Option<f64>,
    batch_source: Option<String>,
    models: Vec<Model>,
}

/// US dollars per million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    name: String,
    input: f64,
    cached: f64,
    output: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    vendor: Vec<Vendor>,
}

/// A price, with its date and source.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPrice {
    pub price: Price,
    pub date: String,
    pub source: String,
}

/// Returns the prices of all providers.
fn vendors() -> &'static [Vendor] {
    static LIST: LazyLock<Vec<Vendor>> =
        LazyLock::new(|| toml::from_str(PRICES).map_or(Vec::new(), |l: PriceList| l.vendor));
    &LIST
}

/// Returns the price of requests in batches as a share of the ordinary price, or `None` if the
/// provider has no batches.
pub fn batch_share(kind: BackendKind) -> Option<f64> {
    let vendor = vendors().iter().find(|v| v.kind == kind.name())?;
    // A share without a source does not count.
    vendor.batch_source.as_ref().and(vendor.batch)
}

/// Returns the listed price of a model at its own provider, or `None` if it is not listed.
pub fn listed(kind: BackendKind, model: &str) -> Option<ListedPrice> {
    let vendor = vendors().iter().find(|v| v.kind == kind.name())?;
    let model = model.rsplit('/').next().unwrap_or(model);
    let exact = vendor.models.iter().find(|m| m.name == model);
    let m = exact.or_else(|| vendor.models.iter().find(|m| is_version(model, &m.name)))?;
    let price = Price {
        input: m.input,
        cached: m.cached,
        output: m.output,
    };
    Some(ListedPrice {
        price,
        date: vendor.date.clone(),
        source: vendor.source.clone(),
    })
}

/// Returns true if a model is the listed one, or a dated version of it. A name with another suffix
/// is a different model.
fn is_version(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else {
        return false;
    };
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty();
    };
    let parts: Vec<&str> = rest
        .strip_prefix("preview-")
        .unwrap_or(rest)
        .split('-')
        .collect();
    let lengths: Vec<usize> = parts.iter().map(|p| p.len()).collect();
    // 20260101, 2026-01-01, 01-2026, or a revision number such as 001.
    let is_date = parts
        .iter()
        .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
        && matches!(lengths[..], [8] | [4, 2, 2] | [2, 4] | [3]);
    matches!(rest, "latest" | "preview") || is_date
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_list_names_its_sources_and_has_each_model_once_with_plausible_prices() {
        let list: PriceList = toml::from_str(PRICES).unwrap();
        let kinds: Vec<&str> = list.vendor.iter().map(|v| v.kind.as_str()).collect();
        assert_eq!(kinds, ["anthropic", "openai", "google"]);
        for vendor in &list.vendor {
            assert!(vendor.source.starts_with("https://"), "{vendor:?}");
            assert!(
                vendor.date.parse::<jiff::civil::Date>().is_ok(),
                "{vendor:?}"
            );
            assert_eq!(vendor.batch.is_some(), vendor.batch_source.is_some());
            if let (Some(share), Some(source)) = (vendor.batch, &vendor.batch_source) {
                assert!(0.0 < share && share < 1.0 && source.starts_with("https://"));
            }
            let names: HashSet<&str> = vendor.models.iter().map(|m| m.name.as_str()).collect();
            assert_eq!(names.len(), vendor.models.len());
            for m in &vendor.models {
                assert!(
                    0.0 < m.cached && m.cached <= m.input && m.input < m.output && m.output < 200.0,
                    "{m:?}"
                );
            }
        }
    }

    fn input(kind: BackendKind, model: &str) -> Option<f64> {
        listed(kind, model).map(|l| l.price.input)
    }

    #[test]
    fn a_name_covers_its_dated_versions_and_no_other_model() {
        for (model, price) in [
            ("claude-opus-4-5", Some(5.0)),
            ("claude-opus-4-5-20251101", Some(5.0)),
            ("claude-opus-4-5-latest", Some(5.0)),
            ("claude-opus-5-5", Some(4.0)),
            ("claude-opus-5-5-fast", None),
            ("claude-opus-5-10", None),
            ("claude-opus", None),
            ("", None),
        ] {
            assert_eq!(input(BackendKind::Anthropic, model), price, "{model}");
        }
        for (model, price) in [
            ("gpt-5", Some(1.25)),
            ("gpt-5-2025-08-07", Some(1.25)),
            ("gpt-5-pro", None),
            ("gpt-4o-2024-05-13", Some(5.0)),
            ("gpt-4o-2024-08-06", Some(2.5)),
            ("gpt-5-mini", Some(0.25)),
            ("gpt-5-mini-2025-08-07", Some(0.25)),
            ("gpt-4o-audio-preview", None),
            ("claude-opus-4-5", None),
        ] {
            assert_eq!(input(BackendKind::OpenAi, model), price, "{model}");
        }
        assert_eq!(
            input(BackendKind::Google, "models/gemini-3.1-pro-preview"),
            Some(2.0)
        );
        assert_eq!(
            input(BackendKind::Google, "gemini-2.5-flash-lite-preview-09-2025"),
            Some(0.1)
        );
        assert_eq!(input(BackendKind::Google, "gemini-2.5-flash-image"), None);
    }
}
