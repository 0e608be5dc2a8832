//! The expressions from which variables are derived, so that a check of a variable is also a check
//! of its sources.

use super::derivations::Derivations;
use super::names;
use super::run::FlowRun;
use super::shape::{ExprId, ExprKind, Op, Sym};
use std::rc::Rc;

impl FlowRun<'_> {
    /// Returns the names from which a variable's value was derived, with the kinds for which a
    /// check of the variable is a check of the name.
    pub(super) fn sources_of(&self, name: Sym) -> Vec<(Sym, u32)> {
        let own = self.derived.names.get(&name);
        let known = own.or_else(|| self.file_derived(name)?.names.get(&name));
        known.cloned().unwrap_or_default()
    }

    /// Returns the check whose outcome a variable holds.
    pub(super) fn outcome(&self, name: Sym) -> Option<ExprId> {
        if self.derived.names.contains_key(&name) {
            return self.derived.outcomes.get(&name).copied();
        }
        self.file_derived(name)?.outcomes.get(&name).copied()
    }

    /// Returns what is known about the variables of the file, if the running function has no
    /// variable of this name.
    fn file_derived(&self, name: Sym) -> Option<&Derivations> {
        self.env
            .get(name)
            .is_none()
            .then_some(&self.derived_of_file)
    }

    /// Records the expression from which a variable is derived.
    pub(super) fn remember(&mut self, target: ExprId, value: ExprId) {
        let ExprKind::Name(name) = self.module.expr(target).kind else {
            return;
        };
        let mut value = value;
        while let ExprKind::Pass(of) = self.module.expr(value).kind {
            value = of;
        }
        let mut names = Vec::new();
        match &self.module.expr(value).kind {
            ExprKind::Call { .. }
            | ExprKind::Member { .. }
            | ExprKind::New { .. }
            | ExprKind::Binary { .. } => {
                self.names_in(value, u32::MAX, 0, &mut names);
            }
            _ => {}
        }
        let derived = Rc::make_mut(&mut self.derived);
        derived.names.insert(name, names);
        match &self.module.expr(value).kind {
            ExprKind::Call { .. } | ExprKind::Binary { .. } | ExprKind::Not(_) => {
                derived.outcomes.insert(name, value);
            }
            _ => {
                derived.outcomes.remove(&name);
            }
        }
    }

    /// Collects the names whose data an expression passes on, with the kinds for which a check of
    /// the result is a check of the name.
    fn names_in(&self, id: ExprId, kinds: u32, level: u32, out: &mut Vec<(Sym, u32)>) {
        if level > 6 || out.len() > 8 || kinds == 0 {
            return;
        }
        match &self.module.expr(id).kind {
            ExprKind::Name(n) => out.push((*n, kinds)),
            ExprKind::Pass(of) | ExprKind::Cast { of, .. } => {
                self.names_in(*of, kinds, level + 1, out);
            }
            ExprKind::Member { of, name } => {
                self.names_in(
                    *of,
                    kinds & names::transparent(self.module.word(*name)),
                    level + 1,
                    out,
                );
            }
            ExprKind::Call { callee, args } => {
                let kinds = match &self.module.expr(*callee).kind {
                    ExprKind::Member { of, name } => {
                        let kinds = kinds & names::transparent(self.module.word(*name));
                        self.names_in(*of, kinds, level + 1, out);
                        kinds
                    }
                    ExprKind::Name(name) => kinds & names::transparent(self.module.word(*name)),
                    _ => 0,
                };
                args.iter()
                    .for_each(|a| self.names_in(a.value, kinds, level + 1, out));
            }
            ExprKind::New { class, args } => {
                let kinds = match &self.module.expr(*class).kind {
                    ExprKind::Name(n) | ExprKind::Member { name: n, .. } => {
                        kinds & names::transparent(self.module.word(*n))
                    }
                    _ => 0,
                };
                args.iter()
                    .for_each(|a| self.names_in(a.value, kinds, level + 1, out));
            }
            // Paths that are joined.
            ExprKind::Binary {
                op: Op::Add | Op::Div,
                left,
                right,
            } => {
                let kinds = kinds & names::transparent("join");
                self.names_in(*left, kinds, level + 1, out);
                self.names_in(*right, kinds, level + 1, out);
            }
            _ => {}
        }
    }
}
