//! The second look of depth thorough: grave findings, alone, with the instruction to refute them.

use super::look::Looked;
use super::member::Member;
use super::question::{Asked, Why};
use super::{Outcome, Remark, Session, Team, described, foreign};
use crate::ai::anchor::{self, Dispute};
use crate::ai::ask::Prompt;
use crate::ai::claim::{self, Rebuttal};
use crate::ai::{prompt, reply};
use crate::finding::{Finding, Location, Severity};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// Rules' findings that are asked about, at most.
const DOUBTS: usize = 10;

/// What is put back to be refuted.
enum Doubted {
    /// Positions among the candidates, all of which say the same.
    Claim(Vec<usize>),
    /// Position among the rules' findings.
    Rule(usize),
}

impl<'a> Session<'a> {
    /// Puts each grave claim back, alone, to be refuted; and what the rules found.
    pub(super) async fn second_look(&self, teams: &[Team<'a>], all: &mut Looked, floor: &[Finding], out: &mut Outcome) {
        let judge = |backend: &str| {
            let members = || teams.iter().flat_map(|t| &t.members);
            members().find(|m| m.name() == backend).or_else(|| members().next())
        };
        // What one backend says under several lenses is asked about once.
        let claims = anchor::alike(&mut all.candidates);
        let doubted: Vec<(usize, &Finding)> = floor
            .iter()
            .enumerate()
            .filter(|(_, f)| f.counts() && f.severity() >= Severity::Major && can_be_shown(f))
            .take(DOUBTS)
            .collect();
        let mut looks = FuturesUnordered::new();
        for same in claims {
            let grave = same.iter().map(|i| &all.candidates[*i]).filter(|c| c.draft.severity >= Severity::Major);
            let mut shown = grave.filter_map(|c| {
                let prompt = prompt::refute(self.brief, &c.draft, self.groups.get(c.group)?, &self.nonce)?;
                Some((c, prompt))
            });
            let Some((c, prompt)) = shown.next() else { continue };
            let Some(member) = judge(&c.backend) else { continue };
            let (group, place) = (c.group, c.draft.location.clone());
            drop(shown);
            looks.push(self.rebut(member, prompt, group, (Doubted::Claim(same), place)));
        }
        for (i, f) in doubted {
            let Some(member) = judge("") else { continue };
            // The rules do not say which of several groups without a commit: the first that shows the line.
            let mut groups = self.groups.iter().enumerate().filter(|(_, g)| g.commit == f.commit);
            let shown =
                groups.find_map(|(g, group)| Some((g, prompt::refute(self.brief, f.draft(), group, &self.nonce)?)));
            let Some((group, prompt)) = shown else { continue };
            looks.push(self.rebut(member, prompt, group, (Doubted::Rule(i), f.draft().location.clone())));
        }
        self.planned.set(self.planned.get() + looks.len());
        self.tell();
        let mut refuted = Vec::new();
        while let Some(((what, place), answer)) = looks.next().await {
            match answer {
                Ok(Some(refuted_by)) => refuted.push((what, refuted_by)),
                Ok(None) => {}
                // Nobody refuted it: it stands.
                Err(text) => out.remarks.push(Remark {
                    line: place.as_ref().and_then(|l| l.lines).map(|l| l.first),
                    file: place.map(|l| l.file),
                    ..Remark::of_the_run(text)
                }),
            }
        }
        drop(looks);
        for (what, (backend, reason)) in refuted {
            match what {
                Doubted::Claim(same) => {
                    for i in same {
                        all.candidates[i].disputed = Some(format!("{backend}: {reason}"));
                    }
                }
                Doubted::Rule(rule) => out.claims.disputes.push(Dispute { rule, backend, reason }),
            }
        }
        out.claims.disputes.sort_by_key(|d| d.rule);
    }

    /// Asks whether one claim holds; who says that it does not, and why.
    async fn rebut(
        &self,
        member: &Member<'a>,
        prompt: Prompt,
        group: usize,
        what: (Doubted, Option<Location>),
    ) -> ((Doubted, Option<Location>), Result<Option<(String, String)>, String>) {
        let around = self.around(group);
        let answer = self.question(member, &prompt, &[], claim::rebuttal_schema(), around, reply::rebuttal).await;
        self.step();
        let answer = match answer {
            Ok(Asked { value: Rebuttal { refuted, reason, .. }, keep, .. }) => {
                self.store(keep);
                let reason = foreign(&reason, self.job.rules);
                Ok(refuted.then(|| (member.name().to_owned(), reason)))
            }
            Err(Why::Failed(f)) => Err(format!("a second look was not had: {}: {}", member.name(), described(&f))),
            Err(Why::Limit(limit)) => Err(format!("a second look was not had: {limit}")),
        };
        (what, answer)
    }
}

/// Tells whether the code of a rule's finding can be shown to a model: a secret cannot.
fn can_be_shown(f: &Finding) -> bool {
    !matches!(f.cwe(), Some(798 | 522 | 321)) && f.lines().is_some()
}
