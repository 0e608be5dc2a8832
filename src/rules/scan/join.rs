//! Joins findings of several rules about one flaw on the same lines, so that one rule reports it.

use super::flow::JudgedPart;
use crate::finding::{Confidence, Finding, LineSpan, Severity};
use crate::rules::RuleSet;
use crate::rules::catalog::Matcher;
use crate::rules::flow;
use crate::rules::report::UNKNOWN;
use std::borrow::Borrow;
use std::collections::HashSet;

/// Numbers of the CWE list that describe the same flaw from different sides.
const FAMILIES: &[&[u32]] = &[
    &[74, 77, 78, 88],
    &[94, 95, 96, 1336],
    &[89, 564, 943],
    &[79, 80, 83, 87, 116],
    &[22, 23, 36, 73],
    &[119, 120, 121, 122, 125, 131, 193, 242, 787, 805, 806],
    &[190, 191, 680],
    &[208, 203, 385],
    &[276, 732],
    &[326, 327, 328, 329, 759, 760, 780, 916, 1240],
    &[330, 335, 336, 337, 338, 340],
    &[295, 296, 297, 299, 326, 757],
    &[345, 346, 347],
    &[346, 942],
    &[377, 378, 379],
    &[400, 730, 1333],
    &[489, 215, 209],
    &[611, 776, 827],
    &[614, 1004, 1275],
    &[287, 306, 862, 863],
    &[384, 613],
    &[93, 113],
    &[915, 1321],
    &[683, 688],
];

/// Returns true if two weaknesses are the same flaw, seen from different sides.
pub(in crate::rules) fn is_same_weakness(a: u32, b: u32) -> bool {
    a == b
        || FAMILIES
            .iter()
            .any(|family| family.contains(&a) && family.contains(&b))
}

/// Reports each flaw of a line once: drops each finding of `out`, from the index `from` on, that
/// another finding covers. The remaining findings are in the order of their lines.
///
/// - A rule that judges the origin of a value yields to a rule for that origin: `sh -c` with a
///   value of the request is primarily request data.
/// - A rule of data flow yields to a rule of single lines that does not judge origins, or that
///   reports the flaw at least as severely. That finding keeps its ID, takes the path, and is at
///   least as severe and certain as the flow, unless policy sets the severity of its rule.
///   Otherwise the flow replaces the finding.
/// - A rule of calls that are dangerous by themselves also yields, and changes nothing: the other
///   rule describes the call better, and may have a fix.
/// - Of several findings of one rule on the same lines with the same text, the first remains.
/// - Of several findings of a command, of executed code, of a memory error or of an allowed origin
///   on the same lines, only the one with the most weight remains.
///
/// A comment that suppresses a dropped finding suppresses the remaining one.
pub(super) fn same_flaws(rules: &RuleSet, out: &mut Vec<Finding>, from: usize) {
    for found in by_lines(out.split_off(from)) {
        let found = join_flows(rules, without_covered(rules, found));
        out.extend(without_repeated(rules, join_lines(rules, found)));
    }
}

/// Drops findings that a reader cannot distinguish from an earlier one: of the same rule, on the
/// same lines, with the same text. Secrets remain, because their text is masked.
fn without_repeated(rules: &RuleSet, mut found: Vec<Finding>) -> Vec<Finding> {
    let mut seen = HashSet::new();
    found.retain(|f| {
        let lines = f.lines().map(|l| (l.first, l.last));
        let text = (f.quote().to_owned(), f.message().to_owned());
        is_secret(rules, f) || seen.insert((f.rule_id().to_owned(), lines, text, f.severity()))
    });
    found
}

/// Groups findings that share lines. Only findings of one group are compared with each other,
/// because a file can have thousands of findings.
fn by_lines<F: Borrow<Finding>>(mut found: Vec<F>) -> Vec<Vec<F>> {
    found.sort_by_key(|f| f.borrow().lines().map(|lines| lines.first));
    let mut groups: Vec<Vec<F>> = Vec::new();
    let mut last = None;
    for f in found {
        let lines = f.borrow().lines();
        match groups
            .last_mut()
            .filter(|_| lines.map(|lines| lines.first) <= last)
        {
            Some(group) => group.push(f),
            None => groups.push(vec![f]),
        }
        last = last.max(lines.map(|lines| lines.last));
    }
    groups
}

/// Lets the analysis of data flow decide where a rule of single lines judges the origin of a value
/// from the lines above, or sees data of a request in the line. A finding becomes a suggestion if
/// the analysis knows the call in its line and no value from outside reaches the call: the route
/// can have validated it.
pub(super) fn trust_flows(rules: &RuleSet, judged: &JudgedPart, found: &mut [Finding]) {
    for found in by_lines(found.iter_mut().collect()) {
        trust_flows_of_lines(rules, judged, found);
    }
}

fn trust_flows_of_lines(rules: &RuleSet, judged: &JudgedPart, found: Vec<&mut Finding>) {
    let (flows, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|f| is_of_flow(rules, f));
    for f in others {
        let Some(index) = rules.index_of(f.rule_id()) else {
            continue;
        };
        let names_request = names_request(rules, index, f) && is_judged(judged, f);
        if !names_request && !rules.rule(index).judges_origin {
            continue;
        }
        let severity = rules.severity_of_unknown(index);
        let is_proven = flows.iter().any(|flow| {
            (is_same_flaw(flow, f) || names_request && are_on_same_lines(flow, f))
                && flow.severity() > severity_of_unknown(rules, flow)
        });
        if !is_proven
            && f.severity() > severity
            && flow::has_sink(judged.language, f.quote().as_bytes())
        {
            f.doubt(severity, if names_request { VALIDATED } else { UNKNOWN });
        }
    }
}

/// Returns true if a rule of the catalogue finds data of a request by its name in the line. Team
/// rules decide by themselves.
fn names_request(rules: &RuleSet, index: u16, f: &Finding) -> bool {
    rules.is_of_catalogue(index) && f.rule_id().ends_with(OF_REQUEST)
}

/// Returns true if the absence of a flow proves that the data of a request in the lines of a
/// finding is harmless.
fn is_judged(judged: &JudgedPart, f: &Finding) -> bool {
    !judged.of_script
        && f.cwe() != Some(NOSQL_FILTER_CWE)
        && f.lines().is_some_and(|lines| {
            judged
                .sinks
                .range(lines.first..=lines.last)
                .next()
                .is_some()
        })
}

fn without_covered(rules: &RuleSet, found: Vec<Finding>) -> Vec<Finding> {
    let others = found.iter().filter(|f| {
        f.suppressed.is_none()
            && f.cwe().is_some()
            && !judges_origin(rules, f)
            && !is_of_flow(rules, f)
    });
    let covering: Vec<_> = others.map(|f| (flaw(f), f.severity())).collect();
    if covering.is_empty() {
        return found;
    }
    let kept = found.into_iter().filter(|f| {
        !judges_origin(rules, f)
            || !covering
                .iter()
                .any(|(other, severity)| *other == flaw(f) && *severity >= f.severity())
    });
    kept.collect()
}

/// End of the IDs of rules of single lines whose pattern names data of a request.
const OF_REQUEST: &str = "-request";
/// Reason why such a finding is a suggestion.
const VALIDATED: &str = "the file validates or replaces the value before it reaches the call";
/// The weakness of filters of NoSQL databases. The tables know only a part of the names of their
/// collections.
const NOSQL_FILTER_CWE: u32 = 943;

/// Families of executed code, of memory errors and of allowed origins: one rule may report the same
/// flaw as code and another rule as a command, or as a setting and as a header.
const ONE_FLAW: &[&[u32]] = &[
    &[74, 77, 78, 88, 94, 95, 96, 98],
    &[119, 120, 121, 122, 125, 129, 131, 193, 242, 787, 805, 806],
    &[942],
];

fn join_flows(rules: &RuleSet, found: Vec<Finding>) -> Vec<Finding> {
    let (flows, mut others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|f| is_of_flow(rules, f));
    let mut kept_flows = Vec::new();
    for mut flow in without_weaker(flows) {
        let covering = others.iter_mut().find(|o| {
            is_same_flaw(o, &flow) && (is_at_least_as_heavy(o, &flow) || !judges_origin(rules, o))
        });
        if let Some(other) = covering {
            let is_set = rules
                .index_of(other.rule_id())
                .is_some_and(|i| rules.severity_set(i).is_some());
            other.take_flow(&flow, !is_set);
            take_suppression(rules, other, &flow);
            continue;
        }
        let (kept, covered): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|o| is_secret(rules, o) || !is_same_flaw(o, &flow));
        others = kept;
        covered
            .iter()
            .for_each(|o| take_suppression(rules, &mut flow, o));
        kept_flows.push(flow);
    }
    others.extend(kept_flows);
    others
}

/// Returns true if a finding of single lines is at least as severe as a flow. Of two suggestions, a
/// less certain finding does not count: the flow knows where the value comes from.
fn is_at_least_as_heavy(f: &Finding, flow: &Finding) -> bool {
    if flow.severity() == Severity::Suggestion {
        weight(f) >= weight(flow)
    } else {
        f.severity() >= flow.severity()
    }
}

/// Drops flows that report the same flaw as a flow of at least the same weight.
fn without_weaker(mut flows: Vec<Finding>) -> Vec<Finding> {
    flows.sort_by_key(|f| std::cmp::Reverse(weight(f)));
    let mut out: Vec<Finding> = Vec::new();
    for flow in flows {
        match out
            .iter_mut()
            .find(|o| o.rule_id() != flow.rule_id() && is_joined(o, &flow))
        {
            Some(kept) => {
                kept.take_flow(&flow, false);
                kept.suppressed = kept.suppressed.take().or(flow.suppressed);
            }
            None => out.push(flow),
        }
    }
    out
}

/// Joins findings of several rules of single lines about the same executed code: only the one with
/// the most weight remains.
fn join_lines(rules: &RuleSet, found: Vec<Finding>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::with_capacity(found.len());
    for mut f in found {
        let is_candidate = !is_secret(rules, &f) && !is_of_flow(rules, &f);
        let known = out.iter_mut().find(|o| {
            is_candidate
                && o.rule_id() != f.rule_id()
                && flaw(o).0 == flaw(&f).0
                && is_joined(o, &f)
                && !is_of_flow(rules, o)
        });
        let Some(known) = known else {
            out.push(f);
            continue;
        };
        if specific(rules, &f) > specific(rules, known) {
            std::mem::swap(known, &mut f);
        }
        take_suppression(rules, known, &f);
        known.take_flow(&f, false);
    }
    out
}

/// Copies the suppression of a dropped finding to the kept finding about the same flaw. A secret
/// cannot be suppressed by a comment.
fn take_suppression(rules: &RuleSet, kept: &mut Finding, dropped: &Finding) {
    if kept.suppressed.is_none() && !is_secret(rules, kept) {
        kept.suppressed.clone_from(&dropped.suppressed);
    }
}

/// Returns the weight of a finding: its severity, then its confidence.
fn weight(f: &Finding) -> (Severity, Confidence) {
    (f.severity(), f.confidence())
}

/// Returns the weight of a finding. Of two findings of equal weight, a rule for one origin is more
/// specific than a rule that judges the origin.
fn specific(rules: &RuleSet, f: &Finding) -> (Severity, Confidence, bool) {
    (f.severity(), f.confidence(), !judges_origin(rules, f))
}

/// Returns true if the rule of a finding finds secrets.
fn is_secret(rules: &RuleSet, f: &Finding) -> bool {
    rules.rule_named(f.rule_id()).is_some_and(|r| r.secret)
}

/// Returns true if two findings on the same lines are one command, one piece of code or one memory
/// error.
fn is_joined(a: &Finding, b: &Finding) -> bool {
    let Some((first, second)) = a.cwe().zip(b.cwe()) else {
        return false;
    };
    are_on_same_lines(a, b)
        && ONE_FLAW
            .iter()
            .any(|family| family.contains(&first) && family.contains(&second))
}

/// Returns true if the rule of a finding of single lines judges the origin of the value.
fn judges_origin(rules: &RuleSet, f: &Finding) -> bool {
    rules
        .rule_named(f.rule_id())
        .is_some_and(|r| r.judges_origin)
}

/// Returns true if a rule of data flow made the finding.
fn is_of_flow(rules: &RuleSet, f: &Finding) -> bool {
    rules
        .rule_named(f.rule_id())
        .is_some_and(|r| r.matcher == Matcher::Flow)
}

/// Returns the severity of a finding of the same rule with a value of unknown origin.
fn severity_of_unknown(rules: &RuleSet, f: &Finding) -> Severity {
    rules
        .index_of(f.rule_id())
        .map_or(Severity::Suggestion, |index| {
            rules.severity_of_unknown(index)
        })
}

/// Returns the lines and the weakness of a finding.
fn flaw(f: &Finding) -> (Option<LineSpan>, Option<u32>) {
    (f.lines().map(|l| LineSpan { columns: None, ..l }), f.cwe())
}

fn is_same_flaw(a: &Finding, b: &Finding) -> bool {
    are_on_same_lines(a, b)
        && a.cwe()
            .zip(b.cwe())
            .is_some_and(|(a, b)| is_same_weakness(a, b))
}

fn are_on_same_lines(a: &Finding, b: &Finding) -> bool {
    a.lines()
        .zip(b.lines())
        .is_some_and(|(a, b)| a.first <= b.last && b.first <= a.last)
}
