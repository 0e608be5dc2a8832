//! Runs functions of the file as checks, and finds the result of an equal earlier run.

use super::check_memo::{CheckKey, KnownCheck};
use super::run::FlowRun;
use super::shape::FunctionId;
use super::value::FlowValue;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// A run for a check that has started.
pub(super) struct StartedCheck {
    key: CheckKey,
    work: u64,
    depth: u32,
    /// Bodies that calls had run before.
    invoked: u64,
    /// False if a limit had ended a run before.
    was_complete: bool,
}

impl FlowRun<'_> {
    /// Returns the key of a run for a check. `None`: the run depends on more than the key says.
    ///
    /// The run of a function that is nested in another one depends on the variables of that one,
    /// and while the statements of the file run, a function sees the variables set so far.
    pub(super) fn check_key(
        &self,
        f: FunctionId,
        params: &[FlowValue],
        this: Option<&FlowValue>,
        outcome: Option<bool>,
    ) -> Option<CheckKey> {
        let is_nested = self.nested.get(f.0 as usize).copied().unwrap_or_default();
        let is_in_function = self.frames.iter().any(|x| x.function.is_some());
        if is_nested || !(self.has_globals || is_in_function) {
            return None;
        }
        let mut h = std::hash::DefaultHasher::new();
        // The frames decide about recursion, depth, and the meaning of the name of the object.
        for frame in &self.frames {
            (frame.function, frame.class).hash(&mut h);
        }
        (self.frames.len(), outcome, self.into, self.is_in_outcome).hash(&mut h);
        (&self.listed, &self.segments, &self.unfinished).hash(&mut h);
        // Arguments that are bound to a function are without data if they were reported.
        self.found.len().hash(&mut h);
        for value in params {
            value.feed_wholly(&mut h);
        }
        this.is_some().hash(&mut h);
        if let Some(this) = this {
            this.feed_wholly(&mut h);
        }
        Some((f, h.finish()))
    }

    /// Returns the result of an equal earlier run, and counts its work: a memory that saved work
    /// would move the point at which a limit ends the analysis.
    pub(super) fn known_check(&mut self, key: CheckKey) -> Option<Rc<[u32]>> {
        let known = self.checks.get(key, self.work, self.depth)?;
        self.work -= known.work;
        Some(Rc::clone(&known.kinds))
    }

    /// Starts a run whose result may be remembered.
    pub(super) fn start_check(&mut self, key: CheckKey) -> StartedCheck {
        StartedCheck {
            key,
            work: self.work,
            depth: self.depth,
            invoked: self.invoked,
            was_complete: std::mem::replace(&mut self.is_complete, true),
        }
    }

    /// Ends a run. Remembers its result if another run would be the same: no limit ended it, and it
    /// found the results of all calls in the memory of calls.
    pub(super) fn end_check(&mut self, started: &StartedCheck, kinds: &[u32]) {
        let is_whole = self.is_complete && self.work > 0;
        self.is_complete &= started.was_complete;
        if is_whole && self.invoked == started.invoked {
            let known = KnownCheck {
                kinds: kinds.into(),
                work: started.work - self.work,
                depth: started.depth,
            };
            self.checks.insert(started.key, known);
        }
    }
}
