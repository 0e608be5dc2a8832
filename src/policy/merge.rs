//! Merges the settings of all layers into one policy.

use super::keys::{self, BACKEND, PolicyKey, Trust, Variables, is_valid_for};
use super::kind::{Url, did_you_mean};
use super::parse::{ParsedPolicy, PolicyProblem, Setting, Slot};
use super::value::{PolicyValue, closest};
use super::{
    Backend, BackendKind, Layer, Policy, PolicyFile, PolicyNote, ProjectFile, ProjectOrigin,
    SettingOrigin, preset,
};
use crate::env::Env;
use crate::finding::Severity;
use crate::request::{Depth, OnIncomplete, Overrides};

/// The default of `max_requests` at depth thorough.
const THOROUGH_REQUESTS: u32 = 400;

/// A file with its parsed content.
#[derive(Clone, Copy)]
pub(super) struct ParsedFile<'a> {
    pub(super) file: &'a PolicyFile,
    pub(super) parsed: &'a ParsedPolicy,
}

/// Applies the files on top of the defaults.
pub(super) fn files<'a>(
    user: Option<ParsedFile<'a>>,
    project: Option<(&'a ProjectFile, ParsedFile<'a>)>,
) -> Merge<'a> {
    let mut merge = Merge {
        policy: Policy::default(),
        notes: Vec::new(),
        refused: Vec::new(),
        tables: Vec::new(),
    };
    if let Some(read) = &user {
        merge.define_backends(Layer::User, read);
    }
    if let Some((_, read)) = &project {
        merge.define_backends(Layer::Project, read);
    }
    // The user's file overrides the project's file in the keys that need trust or cost the user
    // money, and the project's file overrides the user's file in the others.
    if let Some((file, read)) = &project {
        merge.project_below_user(file, read);
    }
    if let Some(read) = &user {
        merge.user(read);
    }
    if let Some((file, read)) = &project {
        merge.project_above_user(file, read);
    }
    merge
}

/// A policy during the merge.
pub(super) struct Merge<'a> {
    policy: Policy,
    notes: Vec<PolicyNote>,
    /// Operator-only settings of a project's file without trust.
    refused: Vec<(&'a PolicyFile, &'a Setting)>,
    /// The position of each `[backend.NAME]`, the user's file first.
    tables: Vec<(String, SettingOrigin)>,
}

impl ParsedFile<'_> {
    /// Returns the origin of a setting of this file.
    fn origin(&self, layer: Layer, setting: &Setting) -> SettingOrigin {
        SettingOrigin {
            layer,
            place: self.file.name.clone(),
            line: Some(setting.line),
        }
    }
}

impl Slot {
    /// Returns the trust that the key needs.
    pub(super) fn trust(&self) -> Trust {
        match self {
            Self::Policy(_, key) => key.trust,
            Self::Backend(_, key) => key.trust,
        }
    }
}

/// Returns true for an address of this machine, which needs no trust.
fn is_loopback(s: &Setting) -> bool {
    s.slot.trust() == Trust::OperatorUnlessLoopback
        && Url::parse(s.value.text()).is_ok_and(|u| u.loopback)
}

impl<'a> Merge<'a> {
    /// Defines the backends of a file, with the positions of their tables.
    fn define_backends(&mut self, layer: Layer, read: &ParsedFile<'_>) {
        for (name, line) in &read.parsed.backends {
            self.define(name);
            let origin = SettingOrigin {
                layer,
                place: read.file.name.clone(),
                line: Some(*line),
            };
            self.tables.push((name.clone(), origin));
        }
    }

    /// Applies the keys in which the user's file overrides the project's file. An operator-only
    /// value without trust is kept for [`Merge::finish`], which refuses it.
    fn project_below_user(&mut self, file: &ProjectFile, read: &ParsedFile<'a>) {
        let settings = read.parsed.settings.iter();
        for setting in settings.filter(|s| s.slot.trust().prefers_user()) {
            let trust = setting.slot.trust();
            if !file.trusted && trust.is_operator() && !is_loopback(setting) {
                self.refused.push((read.file, setting));
                continue;
            }
            self.set(
                &setting.slot,
                &setting.value,
                read.origin(Layer::Project, setting),
            );
            if !file.trusted && trust == Trust::OperatorUnlessLoopback {
                self.backend(&setting.slot, |b| b.keyless = true);
            }
        }
    }

    /// Applies the user's file.
    fn user(&mut self, read: &ParsedFile<'_>) {
        for setting in &read.parsed.settings {
            self.set(
                &setting.slot,
                &setting.value,
                read.origin(Layer::User, setting),
            );
            if setting.slot.trust() == Trust::OperatorUnlessLoopback {
                self.backend(&setting.slot, |b| b.keyless = false);
            }
        }
        self.entries(read);
    }

    /// Applies the keys in which the project's file overrides the user's file.
    fn project_above_user(&mut self, file: &ProjectFile, read: &ParsedFile<'_>) {
        // The user named this file for this run, so it overrides the user's own file in every key.
        let is_named = file.trusted && file.from == ProjectOrigin::Flag;
        let settings = read.parsed.settings.iter();
        for setting in settings.filter(|s| is_named || !s.slot.trust().prefers_user()) {
            if setting.slot.trust() == Trust::Narrows && !file.trusted {
                self.narrow(read, setting);
            } else {
                self.set(
                    &setting.slot,
                    &setting.value,
                    read.origin(Layer::Project, setting),
                );
            }
        }
        self.entries(read);
    }

    /// Adds the `[[path]]` and `[[guideline]]` entries of a file.
    fn entries(&mut self, read: &ParsedFile<'_>) {
        self.policy.paths.extend(read.parsed.paths.iter().cloned());
        self.policy
            .guidelines
            .extend(read.parsed.guidelines.iter().cloned());
    }

    /// Adds a backend with its default values, unless there is one of this name.
    fn define(&mut self, name: &str) {
        let backends = &mut self.policy.backends;
        if let Err(at) = backends.binary_search_by(|b| b.name.as_str().cmp(name)) {
            backends.insert(at, Backend::new(name));
        }
    }

    /// Changes the backend that a key belongs to.
    fn backend(&mut self, slot: &Slot, change: impl FnOnce(&mut Backend)) {
        if let Slot::Backend(name, _) = slot
            && let Some(b) = self.policy.backends.iter_mut().find(|b| b.name == *name)
        {
            change(b);
        }
    }

    /// Sets a value, and its origin.
    fn set(&mut self, slot: &Slot, value: &PolicyValue, origin: SettingOrigin) {
        match slot {
            Slot::Policy(_, key) => (key.set)(&mut self.policy, value),
            Slot::Backend(name, key) => {
                self.backend(slot, |b| (key.set)(b, value));
                // A backend has one source for its key. The higher layer replaces the other source,
                // too.
                let other = match key.name {
                    "api_key_env" => "api_key_command",
                    "api_key_command" => "api_key_env",
                    _ => "",
                };
                if !other.is_empty() {
                    self.backend(slot, |b| match other {
                        "api_key_env" => b.api_key_env = None,
                        _ => b.api_key_command = None,
                    });
                    self.policy
                        .origins
                        .remove(&format!("backend.{name}.{other}"));
                }
            }
        }
        self.policy.origins.insert(slot.name(), origin);
    }

    /// Applies the entries of a list that the user's list has too, with a note about the others.
    /// Without a user's list, applies all.
    fn narrow(&mut self, read: &ParsedFile<'_>, setting: &Setting) {
        let full = setting.slot.name();
        let Slot::Policy(_, key) = &setting.slot else {
            return;
        };
        let origin = read.origin(Layer::Project, setting);
        if self.policy.layer_of(&full) != Layer::User {
            return self.set(&setting.slot, &setting.value, origin);
        }
        let allowed = (key.get)(&self.policy);
        let (kept, ignored): (Vec<String>, Vec<String>) = setting
            .value
            .list()
            .iter()
            .cloned()
            .partition(|entry| allowed.list().contains(entry));
        self.set(&setting.slot, &PolicyValue::List(kept), origin);
        if !ignored.is_empty() {
            let (file, line) = (&read.file.name, setting.line);
            let text = format!(
                "{full:?} in {file}:{line} names {}, which your own policy file does not allow; to trust this file: \
                 claude-reviewer policy trust",
                ignored.join(", ")
            );
            self.notes.push(PolicyNote {
                line: Some(line),
                key: full,
                value: setting.value.to_toml(),
                text,
            });
        }
    }

    /// Ignores a value, with a note unless that has no effect.
    fn refuse(&mut self, file: &PolicyFile, setting: &Setting) {
        if !self.is_change(setting) {
            return;
        }
        let full = setting.slot.name();
        self.backend(&setting.slot, |b| b.withheld = Some(full.clone()));
        let what = match &setting.slot {
            Slot::Backend(name, _) => {
                format!("operator only, so it is ignored and backend {name:?} is skipped")
            }
            Slot::Policy(..) => "operator only, so it is ignored".to_owned(),
        };
        self.notes.push(PolicyNote {
            line: Some(setting.line),
            key: full.clone(),
            value: setting.value.to_toml(),
            text: format!(
                "{full:?} in {}:{} is {what}; to trust this file: claude-reviewer policy trust",
                file.name, setting.line
            ),
        });
    }

    /// Returns true if an operator-only value of the project would change the policy: the user has
    /// no value of their own, and the value is not the one that applies anyway.
    fn is_change(&self, setting: &Setting) -> bool {
        if self.is_own(&setting.slot.name()) {
            return false;
        }
        match &setting.slot {
            Slot::Policy(_, key) => (key.get)(&self.policy) != setting.value,
            Slot::Backend(name, key) => self.policy.backend(name).is_some_and(|backend| {
                let is_about_key = key.name.starts_with("api_key");
                let is_given = self.is_usual(backend, key.name, &setting.value)
                    || is_about_key && self.has_own_key(name);
                !is_given && (key.get)(backend) != setting.value
            }),
        }
    }

    /// Returns true if the user has set the source of a backend's key.
    fn has_own_key(&self, backend: &str) -> bool {
        ["api_key_env", "api_key_command"]
            .iter()
            .any(|key| self.is_own(&format!("backend.{backend}.{key}")))
    }

    /// Returns true if a value is what the backend uses if the key is unset: the program `claude`,
    /// or the provider's usual variable at the provider's or the user's own address.
    fn is_usual(&self, backend: &Backend, key: &str, value: &PolicyValue) -> bool {
        match key {
            "path" => backend.path.is_none() && value.text() == "claude",
            "api_key_env" => {
                backend.usual_key() == Some(value.text())
                    && (backend.base_url.is_none()
                        || backend.preset().is_some()
                        || self.is_own(&format!("backend.{}.base_url", backend.name)))
            }
            _ => false,
        }
    }

    /// Returns true if the user of this machine sets a value, and not the project.
    fn is_own(&self, key: &str) -> bool {
        matches!(
            self.policy.layer_of(key),
            Layer::User | Layer::Environment | Layer::Flag
        )
    }

    /// Applies the environment and returns invalid variables. An invalid value never falls back to
    /// another layer.
    #[must_use]
    pub(super) fn environment(&mut self, env: &Env) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        for variables in keys::VARIABLES {
            let Some(variable) = variables.names.iter().find(|v| env.os(v).is_some()) else {
                continue;
            };
            for slot in self.slots_of(variables) {
                if let Err(problem) = self.variable(env, variable, &slot)
                    && !problems.contains(&problem)
                {
                    problems.push(problem);
                }
            }
        }
        problems
    }

    /// Returns the targets of environment variables: a key of the policy, or a key of all backends
    /// of some kinds.
    fn slots_of(&self, variables: &Variables) -> Vec<Slot> {
        let Some(key) = variables.key.strip_prefix("backend.NAME.") else {
            return policy_slot(variables.key).into_iter().collect();
        };
        let Some(key) = keys::backend_key(key) else {
            return Vec::new();
        };
        let backends = self
            .policy
            .backends
            .iter()
            .filter(|b| b.kind.is_some_and(|k| variables.kinds.contains(&k)));
        backends
            .map(|b| Slot::Backend(b.name.clone(), key))
            .collect()
    }

    /// Applies an environment variable to a key.
    fn variable(
        &mut self,
        env: &Env,
        variable: &str,
        slot: &Slot,
    ) -> std::result::Result<(), PolicyProblem> {
        let Some(raw) = env.os(variable) else {
            return Ok(());
        };
        let kind = match slot {
            Slot::Policy(_, key) => key.kind,
            Slot::Backend(_, key) => key.kind,
        };
        let Some(text) = raw.to_str() else {
            return Err(bad_variable(variable, "is not UTF-8", None));
        };
        match kind.read_variable(text) {
            Ok(value) => {
                self.set(
                    slot,
                    &value,
                    SettingOrigin {
                        layer: Layer::Environment,
                        place: variable.to_owned(),
                        line: None,
                    },
                );
                Ok(())
            }
            Err(c) => Err(bad_variable(variable, &c.text, c.hint)),
        }
    }

    /// Applies the command line.
    pub(super) fn flags(&mut self, flags: &Overrides) {
        for (key, value) in values_of_flags(flags) {
            if let (Some(value), Some(slot)) = (value, policy_slot(key)) {
                self.set(&slot, &value, by_flag(key));
            }
        }
        if let (Some(model), Some(key)) = (&flags.model, keys::backend_key("model")) {
            let names: Vec<String> = self
                .policy
                .backends
                .iter()
                .map(|b| b.name.clone())
                .collect();
            for name in names {
                self.set(
                    &Slot::Backend(name, key),
                    &PolicyValue::Text(model.clone()),
                    by_flag("backend.NAME.model"),
                );
            }
        }
    }

    /// Returns the policy of all layers, and notes about ignored settings.
    pub(super) fn finish(mut self) -> (Policy, Vec<PolicyNote>) {
        for (file, setting) in std::mem::take(&mut self.refused) {
            self.refuse(file, setting);
        }
        // At depth thorough, one chunk takes many requests: tools and four lenses.
        let is_default = self.policy.layer_of("review.max_requests") == Layer::Default;
        if is_default && self.policy.review.depth == Depth::Thorough {
            self.policy.review.max_requests = THOROUGH_REQUESTS;
        }
        (self.policy, self.notes)
    }

    /// Validates the merged policy.
    #[must_use]
    pub(super) fn check(&self) -> Vec<PolicyProblem> {
        let defined = self.policy.backends.iter();
        let enabled = self.policy.review.backends.iter();
        defined
            .filter_map(|backend| self.check_backend(backend))
            .chain(enabled.filter_map(|name| self.check_enabled(name)))
            .collect()
    }

    /// Checks that a backend has a kind, and only keys of its kind.
    fn check_backend(&self, backend: &Backend) -> Option<PolicyProblem> {
        let name = &backend.name;
        let kind_key = format!("backend.{name}.kind");
        let Some(kind) = backend.kind else {
            let what = "is missing; only built-in backends have a default kind";
            return Some(self.problem(&kind_key, what, Some(hint_for_kind(name))));
        };
        if let Some(known) = BackendKind::of_built_in(name).filter(|k| *k != kind) {
            let hint = format!("rename the backend; {name:?} is built in");
            let what = format!(
                "must be {:?} for the built-in backend of this name",
                known.name()
            );
            return Some(self.problem(&kind_key, &what, Some(hint)));
        }
        let foreign = BACKEND
            .iter()
            .filter(|k| (k.get)(backend) != PolicyValue::Unset)
            .find(|k| !is_valid_for(k.name, kind))?;
        let what = format!("is not valid for a backend of kind {:?}", kind.name());
        Some(self.problem(&format!("backend.{name}.{}", foreign.name), &what, None))
    }

    /// Checks that an enabled backend is defined.
    fn check_enabled(&self, name: &str) -> Option<PolicyProblem> {
        if self.policy.backend(name).is_some() {
            return None;
        }
        let known: Vec<&str> = self
            .policy
            .backends
            .iter()
            .map(|b| b.name.as_str())
            .collect();
        let hint = match closest(name, known.iter().copied()) {
            Some(name) => did_you_mean(name),
            None => format!("define it as [backend.{name}], or use {}", known.join(", ")),
        };
        let what = format!("names the unknown backend {name:?}");
        Some(self.problem("review.backends", &what, Some(hint)))
    }

    /// Returns a problem with the position of a key. A missing key is reported at its table.
    fn problem(&self, key: &str, what: &str, hint: Option<String>) -> PolicyProblem {
        let mut origin = self.policy.origin_of(key);
        if origin.layer == Layer::Default
            && let Some((_, table)) = self
                .tables
                .iter()
                .find(|(name, _)| key == format!("backend.{name}.kind"))
        {
            origin = table;
        }
        let place = origin.to_string();
        let message = if place == "default" {
            format!("{key:?} {what}")
        } else {
            format!("{key:?} in {place} {what}")
        };
        PolicyProblem {
            line: origin.line,
            message,
            hint,
        }
    }
}

/// Returns the hint for a backend without a kind: the built-in backend that was meant, or the line
/// to add.
fn hint_for_kind(backend: &str) -> String {
    match closest(backend, preset::built_in_names()) {
        Some(name) => did_you_mean(name),
        None => format!(
            "add to [backend.{backend}]: kind = \"openai\" (or {})",
            BackendKind::ALL.map(BackendKind::name).join(", ")
        ),
    }
}

/// Returns the values of the command line by the full names of their keys; `None` for a flag that
/// was not given.
fn values_of_flags(flags: &Overrides) -> [(&'static str, Option<PolicyValue>); 9] {
    let on_incomplete = flags.on_incomplete.map(|v| match v {
        OnIncomplete::Fail => "fail",
        OnIncomplete::Warn => "warn",
    });
    let depth = flags.depth.map(|v| match v {
        Depth::Quick => "quick",
        Depth::Thorough => "thorough",
    });
    let focus = flags.focus.as_ref();
    [
        ("block_on", flags.block_on.as_deref().map(sorted)),
        ("warn_on", flags.warn_on.as_deref().map(sorted)),
        ("on_incomplete", on_incomplete.map(named)),
        (
            "review.focus",
            focus.map(|l| PolicyValue::names(l.iter().map(|c| c.name()))),
        ),
        ("review.depth", depth.map(named)),
        ("review.jobs", flags.jobs.map(PolicyValue::Count)),
        ("review.timeout", flags.timeout.map(PolicyValue::Span)),
        (
            "review.max_cost_usd",
            flags.max_cost_usd.map(PolicyValue::Number),
        ),
        (
            "review.max_requests",
            flags.max_requests.map(PolicyValue::Count),
        ),
    ]
}

/// Returns the value of a choice.
fn named(name: &str) -> PolicyValue {
    PolicyValue::Text(name.to_owned())
}

/// Returns the problem of an invalid variable. Without another hint, the hint is to unset the
/// variable.
fn bad_variable(variable: &str, what: &str, hint: Option<String>) -> PolicyProblem {
    let hint = hint.or_else(|| Some(format!("unset it: env -u {variable} claude-reviewer …")));
    PolicyProblem {
        line: None,
        message: format!("environment variable {variable} {what}"),
        hint,
    }
}

/// Returns the origin of a value that a flag sets, by the full name of the key.
fn by_flag(key: &str) -> SettingOrigin {
    SettingOrigin {
        layer: Layer::Flag,
        place: keys::flag_of(key).unwrap_or_default().to_owned(),
        line: None,
    }
}

/// Returns a list of severities as a value, worst first and without repetitions.
fn sorted(list: &[Severity]) -> PolicyValue {
    let mut list = list.to_vec();
    list.sort_by(|a, b| b.cmp(a));
    list.dedup();
    PolicyValue::severities(&list)
}

/// Returns the key of a fixed table by its full name.
fn policy_slot(name: &str) -> Option<Slot> {
    let table = keys::TABLES
        .iter()
        .find(|t| name.split_once('.').map_or("", |(t, _)| t) == t.name)?;
    keys::find(name).map(|key: &'static PolicyKey<Policy>| Slot::Policy(table.name, key))
}

#[cfg(test)]
mod tests;
