//! Tables: the severities of rules, and prices.

use super::{Complaint, MAX_LIST, ReadValue, ValueKind, article, complaint, severity};
use crate::policy::value::PolicyValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Validates a table of rule IDs and severities.
pub(super) fn severities(table: &DeTable<'_>) -> ReadValue {
    if table.len() > MAX_LIST {
        return Err(complaint(format!(
            "has {} entries; the limit is {MAX_LIST}",
            table.len()
        )));
    }
    let mut rows = Vec::new();
    for (id, value) in table {
        let id = ValueKind::RuleIds
            .item(id.get_ref())
            .map_err(|c| c.at(id.span()))?;
        let severity = severity_of(&id, value).map_err(|c| c.at(value.span()))?;
        rows.push((id, PolicyValue::Text(severity)));
    }
    Ok(PolicyValue::Table(rows))
}

/// Validates the severity of one rule, and returns its name.
fn severity_of(id: &str, value: &Spanned<DeValue<'_>>) -> Result<String, Complaint> {
    match value.get_ref() {
        DeValue::String(s) => severity(s),
        other => Err(complaint(format!(
            "must map {id:?} to a severity, not to {}",
            article(other)
        ))),
    }
}

/// Validates a price in US dollars per million tokens.
pub(super) fn price(table: &DeTable<'_>) -> ReadValue {
    let mut rows = Vec::new();
    for (name, value) in table {
        if !["input", "cached", "output"].contains(&name.get_ref().as_ref()) {
            return Err(complaint(format!(
                "has the unknown entry {:?}; it must be {}",
                name.get_ref(),
                ValueKind::Price.expects()
            ))
            .at(name.span()));
        }
        let usd = ValueKind::Number(0.0, 1e6)
            .read(value)
            .map_err(|c| c.at(value.span()))?;
        rows.push((name.get_ref().to_string(), usd));
    }
    Ok(PolicyValue::Table(rows))
}
