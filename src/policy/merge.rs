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
    let project_file = project.iter().map(|(_, read)| (Layer::Project, read));
    for (layer, read) in user
        .iter()
        .map(|read| (Layer::User, read))
        .chain(project_file)
    {
        for (name, line) in &read.parsed.backends {
            merge.define(name);
            let place = read.file.name.clone();
            merge.tables.push((
                name.clone(),
                SettingOrigin {
                    layer,
                    place,
                    line: Some(*line),
                },
            ));
        }
    }
    // First the keys in which the user's file overrides the project's file …
    if let Some((p, read)) = &project {
        for s in read
            .parsed
            .settings
            .iter()
            .filter(|s| s.slot.trust().prefers_user())
        {
            if p.trusted || !s.slot.trust().is_operator() || is_loopback(s) {
                merge.set(&s.slot, &s.value, read.origin(Layer::Project, s));
                if !p.trusted && s.slot.trust() == Trust::OperatorUnlessLoopback {
                    merge.backend(&s.slot, |b| b.keyless = true);
                }
            } else {
                merge.refused.push((read.file, s));
            }
        }
    }
    // … then the user's file, and then the keys in which the project's file overrides it.
    if let Some(read) = &user {
        for s in &read.parsed.settings {
            merge.set(&s.slot, &s.value, read.origin(Layer::User, s));
            if s.slot.trust() == Trust::OperatorUnlessLoopback {
                merge.backend(&s.slot, |b| b.keyless = false);
            }
        }
        merge.policy.paths.extend(read.parsed.paths.iter().cloned());
        merge
            .policy
            .guidelines
            .extend(read.parsed.guidelines.iter().cloned());
    }
    if let Some((p, read)) = &project {
        // The user named this file for this run, so it overrides the user's own file in every key.
        let named = p.trusted && p.from == ProjectOrigin::Flag;
        for s in read
            .parsed
            .settings
            .iter()
            .filter(|s| named || !s.slot.trust().prefers_user())
        {
            if s.slot.trust() == Trust::Narrows && !p.trusted {
                merge.narrow(read, s);
            } else {
                merge.set(&s.slot, &s.value, read.origin(Layer::Project, s));
            }
        }
        merge.policy.paths.extend(read.parsed.paths.iter().cloned());
        merge
            .policy
            .guidelines
            .extend(read.parsed.guidelines.iter().cloned());
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
    fn origin(&self, layer: Layer, setting: &Setting) -> SettingOrigin {
        SettingOrigin {
            layer,
            place: self.file.name.clone(),
            line: Some(setting.line),
        }
    }
}

impl Slot {
    pub(super) fn trust(&self) -> Trust {
        match self {
            Self::Policy(_, key) => key.trust,
            Self::Backend(_, key) => key.trust,
        }
    }
}

fn is_loopback(s: &Setting) -> bool {
    s.slot.trust() == Trust::OperatorUnlessLoopback
        && Url::parse(s.value.text()).is_ok_and(|u| u.loopback)
}

impl Merge<'_> {
    fn define(&mut self, name: &str) {
        let backends = &mut self.policy.backends;
        if let Err(at) = backends.binary_search_by(|b| b.name.as_str().cmp(name)) {
            backends.insert(at, Backend::new(name));
        }
    }

    fn backend(&mut self, slot: &Slot, change: impl FnOnce(&mut Backend)) {
        if let Slot::Backend(name, _) = slot
            && let Some(b) = self.policy.backends.iter_mut().find(|b| b.name == *name)
        {
            change(b);
        }
    }

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
        let full = setting.slot.name();
        let is_own = self.is_own(&full);
        let changes = match &setting.slot {
            Slot::Policy(_, key) => !is_own && (key.get)(&self.policy) != setting.value,
            Slot::Backend(name, key) => {
                let Some(b) = self.policy.backend(name) else {
                    return;
                };
                let key_is_own = ["api_key_env", "api_key_command"]
                    .iter()
                    .any(|k| self.is_own(&format!("backend.{name}.{k}")));
                let usual = match key.name {
                    "path" => b.path.is_none() && setting.value.text() == "claude",
                    "api_key_env" => {
                        b.usual_key() == Some(setting.value.text())
                            && (b.base_url.is_none()
                                || b.preset().is_some()
                                || self.is_own(&format!("backend.{name}.base_url")))
                    }
                    _ => false,
                };
                let about_key = key.name.starts_with("api_key");
                let settled = is_own || usual || (about_key && key_is_own);
                !settled && (key.get)(b) != setting.value
            }
        };
        if !changes {
            return;
        }
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
        let on_incomplete = flags.on_incomplete.map(|v| {
            if v == OnIncomplete::Fail {
                "fail"
            } else {
                "warn"
            }
        });
        let depth = flags.depth.map(|v| {
            if v == Depth::Quick {
                "quick"
            } else {
                "thorough"
            }
        });
        let values = [
            ("block_on", flags.block_on.as_ref().map(|l| sorted(l))),
            ("warn_on", flags.warn_on.as_ref().map(|l| sorted(l))),
            (
                "on_incomplete",
                on_incomplete.map(|name| PolicyValue::Text(name.to_owned())),
            ),
            (
                "review.focus",
                flags
                    .focus
                    .as_ref()
                    .map(|l| PolicyValue::names(l.iter().map(|c| c.name()))),
            ),
            (
                "review.depth",
                depth.map(|name| PolicyValue::Text(name.to_owned())),
            ),
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
        ];
        for (key, value) in values {
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
        let policy = &self.policy;
        let mut problems = Vec::new();
        for b in &policy.backends {
            let Some(kind) = b.kind else {
                let key = format!("backend.{}.kind", b.name);
                let known = BackendKind::ALL.map(BackendKind::name);
                let hint = match closest(&b.name, preset::built_in_names()) {
                    Some(name) => did_you_mean(name),
                    None => format!(
                        "add to [backend.{}]: kind = \"openai\" (or {})",
                        b.name,
                        known.join(", ")
                    ),
                };
                problems.push(self.problem(
                    &key,
                    "is missing; only built-in backends have a default kind",
                    Some(hint),
                ));
                continue;
            };
            if let Some(known) = BackendKind::of_built_in(&b.name).filter(|k| *k != kind) {
                let hint = format!("rename the backend; {:?} is built in", b.name);
                let what = format!(
                    "must be {:?} for the built-in backend of this name",
                    known.name()
                );
                problems.push(self.problem(&format!("backend.{}.kind", b.name), &what, Some(hint)));
                continue;
            }
            let set = BACKEND
                .iter()
                .filter(|k| (k.get)(b) != PolicyValue::Unset)
                .map(|k| k.name);
            if let Some(foreign) = set.into_iter().find(|name| !is_valid_for(name, kind)) {
                let what = format!("is not valid for a backend of kind {:?}", kind.name());
                problems.push(self.problem(&format!("backend.{}.{foreign}", b.name), &what, None));
            }
        }
        for name in &policy.review.backends {
            if policy.backend(name).is_none() {
                let known = policy.backends.iter().map(|b| b.name.as_str());
                let hint = closest(name, known.clone()).map_or_else(
                    || {
                        format!(
                            "define it as [backend.{name}], or use {}",
                            known.collect::<Vec<_>>().join(", ")
                        )
                    },
                    did_you_mean,
                );
                let what = format!("names the unknown backend {name:?}");
                problems.push(self.problem("review.backends", &what, Some(hint)));
            }
        }
        problems
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

fn sorted(list: &[crate::finding::Severity]) -> PolicyValue {
    let mut list = list.to_vec();
    list.sort_by(|a, b| b.cmp(a));
    list.dedup();
    PolicyValue::severities(&list)
}

fn policy_slot(name: &str) -> Option<Slot> {
    let table = keys::TABLES
        .iter()
        .find(|t| name.split_once('.').map_or("", |(t, _)| t) == t.name)?;
    keys::find(name).map(|key: &'static PolicyKey<Policy>| Slot::Policy(table.name, key))
}

#[cfg(test)]
mod tests {
    use crate::diff::RepoPath;
    use crate::env::Env;
    use crate::error::Result;
    use crate::finding::Severity::{self, Critical, Major, Minor, Suggestion};
    use crate::policy::{
        Backend, BackendKind, Layer, Loaded, Policy, PolicyFile, ProjectFile, ProjectOrigin,
        Sources, load,
    };
    use crate::request::{Depth, Overrides};

    #[derive(Default)]
    struct PolicyCase<'a> {
        user: &'a str,
        project: &'a str,
        trusted: bool,
        named: bool,
        env: &'a [(&'a str, &'a str)],
        flags: Overrides,
    }

    impl PolicyCase<'_> {
        fn try_load(&self) -> Result<Loaded> {
            let user = file("~/.config/claude-reviewer/config.toml", self.user);
            let project = ProjectFile {
                from: if self.named {
                    ProjectOrigin::Flag
                } else {
                    ProjectOrigin::Worktree
                },
                file: file(".claude-reviewer.toml", self.project),
                trusted: self.trusted,
            };
            let env = Env::from_pairs("/".into(), self.env.iter().copied());
            load(&Sources {
                user: Some(&user),
                project: Some(&project),
                env: &env,
                overrides: &self.flags,
            })
        }
        #[track_caller]
        fn load(&self) -> Loaded {
            self.try_load().unwrap()
        }
        #[track_caller]
        fn fails(&self) -> String {
            let e = self.try_load().unwrap_err();
            [&[e.message][..], &e.hints].concat().join(" | ")
        }
        #[track_caller]
        fn backend(&self, name: &str) -> Backend {
            self.load().policy.backend(name).unwrap().clone()
        }
    }

    fn file(name: &str, text: &str) -> PolicyFile {
        PolicyFile {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        }
    }

    /// Returns `review.max_rounds`, and its origin.
    fn rounds_of(case: &PolicyCase<'_>) -> (u32, String) {
        let p = case.load().policy;
        (
            p.review.max_rounds,
            p.origin_of("review.max_rounds").to_string(),
        )
    }

    /// Returns the severities that block and warn for a path.
    fn thresholds_at(p: &Policy, path: &str) -> (Vec<Severity>, Vec<Severity>) {
        let t = p.thresholds(Some(&RepoPath::from(path)));
        (t.block_on, t.warn_on)
    }

    #[test]
    fn a_file_that_was_named_for_the_run_decides_where_the_change_goes() {
        let user = "[backend.local]\nkind = 'openai'\nbase_url = 'https://one.example/v1'";
        let project = "[backend.local]\nkind = 'openai'\nbase_url = 'https://two.example/v1'";
        let mut case = PolicyCase {
            user,
            project,
            trusted: true,
            ..PolicyCase::default()
        };
        assert_eq!(
            case.backend("local").base_url.unwrap(),
            "https://one.example/v1"
        );
        case.named = true;
        assert_eq!(
            case.backend("local").base_url.unwrap(),
            "https://two.example/v1"
        );
    }

    #[test]
    fn each_layer_stands_above_the_one_before() {
        let mut case = PolicyCase {
            user: "[review]\nmax_rounds = 2\njobs = 2",
            ..PolicyCase::default()
        };
        assert_eq!(
            rounds_of(&case),
            (2, "~/.config/claude-reviewer/config.toml:2".to_owned())
        );
        case.project = "\n[review]\nmax_rounds = 3";
        assert_eq!(rounds_of(&case), (3, ".claude-reviewer.toml:3".to_owned()));
        case.env = &[("MAX_REVIEW_ROUNDS", "4")];
        assert_eq!(rounds_of(&case), (4, "MAX_REVIEW_ROUNDS".to_owned()));
        case.flags = Overrides {
            jobs: Some(9),
            depth: Some(Depth::Thorough),
            ..Overrides::default()
        };
        let p = case.load().policy;
        assert_eq!(
            (p.review.jobs, p.origin_of("review.jobs").to_string()),
            (9, "--jobs".to_owned())
        );
        assert_eq!(p.origin_of("review.depth").layer, Layer::Flag);
        assert_eq!(p.origin_of("ignore").layer, Layer::Default);
    }

    #[test]
    fn a_persons_list_cannot_widen_the_teams() {
        let case = PolicyCase {
            user: "ignore = ['*']",
            project: "ignore = ['vendor/']",
            ..PolicyCase::default()
        };
        let p = case.load().policy;
        assert!(p.ignores(&"vendor/a".into()));
        assert!(!p.ignores(&"src/a".into()));
    }

    #[test]
    fn path_rules_change_thresholds_key_by_key_and_the_last_wins() {
        let case = PolicyCase {
            project: "[[path]]\nglob = 'services/**'\nblock_on = ['critical']\nwarn_on = ['major']\n\
                      [[path]]\nglob = ['services/pay', 'billing/']\nblock_on = ['minor', 'major', 'critical']\n",
            ..PolicyCase::default()
        };
        let p = case.load().policy;
        assert_eq!(
            thresholds_at(&p, "src/a.rs"),
            (vec![Critical, Major], vec![Minor])
        );
        assert_eq!(
            thresholds_at(&p, "services/a.rs"),
            (vec![Critical], vec![Major])
        );
        assert_eq!(
            thresholds_at(&p, "services/pay/a.rs"),
            (vec![Critical, Major, Minor], vec![Major])
        );
        assert_eq!(
            thresholds_at(&p, "billing/a.rs"),
            (vec![Critical, Major, Minor], vec![Minor])
        );
        assert_eq!(p.thresholds(None).block_on, [Critical, Major]);
    }

    #[test]
    fn a_path_rule_cannot_undo_a_threshold_of_a_higher_layer() {
        let lax = "[[path]]\nglob = '**'\nblock_on = []";
        let team = PolicyCase {
            user: lax,
            project: "block_on = ['critical', 'major']",
            ..PolicyCase::default()
        }
        .load()
        .policy;
        assert_eq!(
            team.thresholds(Some(&"a".into())).block_on,
            [Critical, Major]
        );
        let flags = Overrides {
            block_on: Some(vec![Suggestion, Critical]),
            ..Overrides::default()
        };
        let flag = PolicyCase {
            project: lax,
            flags,
            ..PolicyCase::default()
        }
        .load()
        .policy;
        assert_eq!(
            flag.thresholds(Some(&"a".into())).block_on,
            [Critical, Suggestion]
        );
    }

    #[test]
    fn operator_only_keys_of_an_untrusted_file_are_refused_and_named() {
        let text = "[tests]\ncommand = 'make'\nrun = true\n[history]\npath = 'elsewhere'\n[forge]\ngithub_api = 'https://g.example'\n\
                    [backend.claude]\npath = '/tmp/claude'\n[backend.far]\nkind = 'openai'\nbase_url = 'https://far.example/v1'\n\
                    [backend.anthropic]\napi_key_env = 'OTHER'\n[backend.google]\napi_key_command = 'cat key'\n";
        let Loaded { policy: p, notes } = PolicyCase {
            project: text,
            ..PolicyCase::default()
        }
        .load();
        assert_eq!(
            (
                p.tests.command.as_deref(),
                p.tests.run,
                p.history.path.as_str()
            ),
            (None, false, ".reviews")
        );
        assert_eq!(p.forge.github_api, None);
        for (name, key) in [
            ("claude", "path"),
            ("far", "base_url"),
            ("anthropic", "api_key_env"),
            ("google", "api_key_command"),
        ] {
            let b = p.backend(name).unwrap();
            assert_eq!(b.withheld, Some(format!("backend.{name}.{key}")));
            assert_eq!(
                (&b.path, &b.base_url, &b.api_key_env, &b.api_key_command),
                (&None, &None, &None, &None)
            );
        }
        let lines: Vec<_> = notes.iter().map(|n| n.line.unwrap()).collect();
        assert_eq!(lines, [2, 3, 5, 7, 9, 12, 14, 16]);
        assert!(
            notes[0]
                .text
                .contains("\"tests.command\" in .claude-reviewer.toml:2 is operator only"),
            "{notes:?}"
        );
        assert!(
            notes[0].text.contains("claude-reviewer policy trust"),
            "{notes:?}"
        );

        let Loaded { policy: p, notes } = PolicyCase {
            project: text,
            trusted: true,
            ..PolicyCase::default()
        }
        .load();
        assert_eq!(notes, []);
        assert_eq!(
            (
                p.tests.command.as_deref(),
                p.tests.run,
                p.history.path.as_str()
            ),
            (Some("make"), true, "elsewhere")
        );
        assert!(p.backends.iter().all(|b| b.withheld.is_none()));
        assert_eq!(
            p.backend("far").unwrap().base_url.as_deref(),
            Some("https://far.example/v1")
        );
    }

    #[test]
    fn an_operator_only_value_that_changes_nothing_needs_no_trust() {
        let text = "[history]\npath = './.reviews/'\n[tests]\nrun = false\n[backend.claude]\npath = 'claude'\n\
                    [backend.anthropic]\napi_key_env = 'ANTHROPIC_API_KEY'\n";
        let loaded = PolicyCase {
            project: text,
            ..PolicyCase::default()
        }
        .load();
        assert_eq!(loaded.notes, []);
        assert!(loaded.policy.backends.iter().all(|b| b.withheld.is_none()));
    }

    #[test]
    fn a_persons_own_operator_values_stand_above_the_projects() {
        let mut case = PolicyCase {
            user: "[backend.claude]\npath = '/opt/claude'\n[review]\nmax_cost_usd = 0.5",
            project: "[backend.claude]\npath = '/tmp/claude'\n[review]\nmax_cost_usd = 50",
            ..PolicyCase::default()
        };
        for trusted in [false, true] {
            case.trusted = trusted;
            let Loaded { policy: p, notes } = case.load();
            assert_eq!(
                p.backend("claude").unwrap().path.as_deref(),
                Some("/opt/claude")
            );
            assert_eq!(p.backend("claude").unwrap().withheld, None);
            assert_eq!(p.review.max_cost_usd, 0.5);
            assert_eq!(notes, []);
        }
        case.user = "";
        case.trusted = false;
        for variable in ["CLAUDE_CLI_PATH", "PATH_TO_CLAUDE"] {
            let env = [(variable, "/usr/bin/claude")];
            let Loaded { policy: p, notes } = PolicyCase {
                env: &env,
                project: case.project,
                ..PolicyCase::default()
            }
            .load();
            assert_eq!(
                p.backend("claude").unwrap().path.as_deref(),
                Some("/usr/bin/claude")
            );
            assert_eq!(
                (notes, &p.backend("claude").unwrap().withheld),
                (vec![], &None)
            );
        }
    }

    #[test]
    fn a_loopback_endpoint_of_an_untrusted_file_gets_no_key() {
        let text = "[backend.openai]\nbase_url = 'http://127.0.0.1:11434/v1/'";
        let mut case = PolicyCase {
            project: text,
            ..PolicyCase::default()
        };
        let b = case.backend("openai");
        assert_eq!(
            (b.base_url.as_deref(), b.keyless),
            (Some("http://127.0.0.1:11434/v1"), true)
        );
        // The user's key is for the user's endpoint.
        case.user = "[backend.openai]\napi_key_env = 'MINE'";
        assert!(case.backend("openai").keyless);
        case.trusted = true;
        assert!(!case.backend("openai").keyless);
        case.trusted = false;
        case.user = "[backend.openai]\nbase_url = 'https://mine.example'";
        let b = case.backend("openai");
        assert_eq!(
            (b.base_url.as_deref(), b.keyless),
            (Some("https://mine.example"), false)
        );
        // With a named key, the endpoint is no longer keyless.
        let text =
            "[backend.openai]\nbase_url = 'http://127.0.0.1:1'\napi_key_env = 'OPENAI_API_KEY'";
        let withheld = PolicyCase {
            project: text,
            ..PolicyCase::default()
        }
        .backend("openai")
        .withheld;
        assert_eq!(withheld.as_deref(), Some("backend.openai.api_key_env"));
    }

    #[test]
    fn models_come_from_the_file_the_environment_and_the_flag() {
        let mut case = PolicyCase {
            project: "[backend.claude]\nmodel = 'a'\n[backend.x]\nkind = 'anthropic'\n[backend.openai]\nmodel = 'b'",
            ..PolicyCase::default()
        };
        assert_eq!(case.backend("claude").model.as_deref(), Some("a"));
        case.env = &[("REVIEW_MODEL", "env")];
        assert_eq!(case.backend("claude").model.as_deref(), Some("env"));
        assert_eq!(case.backend("x").model.as_deref(), Some("env"));
        assert_eq!(case.backend("openai").model.as_deref(), Some("b"));
        case.flags.model = Some("flag".to_owned());
        assert_eq!(case.backend("openai").model.as_deref(), Some("flag"));
        assert_eq!(
            case.load().policy.backend("x").unwrap().kind,
            Some(BackendKind::Anthropic)
        );
    }

    #[test]
    fn what_only_the_whole_policy_shows_is_refused_with_its_place() {
        for (project, expected) in [
            (
                "[review]\nbackends = ['cluade']",
                "names the unknown backend \"cluade\" | did you mean \"claude\"?",
            ),
            (
                "[review]\nbackends = ['mine']",
                "\"review.backends\" in .claude-reviewer.toml:2 names the unknown backend",
            ),
            (
                "version = 1\n[backend.mine]\nmodel = 'x'",
                "\"backend.mine.kind\" in .claude-reviewer.toml:2 is missing",
            ),
            (
                "[backend.openai]\npath = 'claude'",
                "is not valid for a backend of kind \"openai\"",
            ),
            (
                "[backend.claude]\napi_key_env = 'X'",
                "is not valid for a backend of kind \"claude\"",
            ),
            (
                "[backend.claude]\nkind = 'openai'",
                "must be \"claude\" for the built-in backend of this name",
            ),
        ] {
            let e = PolicyCase {
                project,
                trusted: true,
                ..PolicyCase::default()
            }
            .fails();
            assert!(e.contains(expected), "{project}: {e}");
        }
        // A team may name a backend that each person defines.
        let user = "[backend.mine]\nkind = 'openai'\nbase_url = 'https://m.example'";
        PolicyCase {
            user,
            project: "[review]\nbackends = ['mine']",
            ..PolicyCase::default()
        }
        .load();
    }

    #[test]
    fn bad_variables_are_refused_by_name() {
        for (name, value) in [
            ("MAX_REVIEW_ROUNDS", "many"),
            ("MAX_REVIEW_ROUNDS", "0"),
            ("AUTO_RUN_TESTS", "maybe"),
            ("CLAUDE_CLI_PATH", "./claude"),
        ] {
            let e = PolicyCase {
                env: &[(name, value)],
                ..PolicyCase::default()
            }
            .fails();
            assert!(e.contains(name), "{e}");
        }
        assert!(
            PolicyCase {
                env: &[("AUTO_RUN_TESTS", "TRUE")],
                ..PolicyCase::default()
            }
            .load()
            .policy
            .tests
            .run
        );
    }
}
