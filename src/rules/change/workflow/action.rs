//! Actions and workflows of other repositories that a workflow uses by a name that can be moved.

use super::{Workflow, YamlLine};
use crate::diff::RepoPath;
use crate::finding::{LineSpan, Severity};
use crate::rules::pins::{ActionUse, Pins, is_branch, pinned};
use crate::rules::report::{Reporter, Sighting};

/// Owners whose actions GitHub itself maintains.
const FIRST_PARTY: &[&str] = &["actions", "github"];
/// The message about a branch of an owner whose branches the base trusts.
const OF_OWN: &str = "Each push to the branch changes what runs in this workflow. The owner is that of this repository, or the workflows of the base already use its branches.";
/// The message about a branch in a workflow that pins none of its actions.
const AMONG_OTHERS: &str = "Each push to the branch changes what runs in this workflow, with its token and secrets. The workflow pins no action of another owner to a commit.";

impl Workflow<'_> {
    /// Reports added steps and jobs that use a branch or a tag of another repository.
    ///
    /// A branch is a suggestion if its owner is the repository's own, or if the workflow pins no
    /// action of another owner: then its authors trust names that can be moved.
    pub(super) fn actions(&self, path: &RepoPath, out: &mut Reporter<'_>) {
        let mut unchanged = None;
        for line in self.lines.iter().filter(|l| l.fresh && is_use(l)) {
            let Some(used) = ActionUse::of(line.value).filter(is_movable) else {
                continue;
            };
            let ActionUse { version, .. } = used;
            let project = used.project();
            let pin = project
                .as_deref()
                .and_then(|project| out.pins().find(project, version));
            let replacement = pin.and_then(|pin| pinned(line.text, &used, &pin));
            let mut sighting = Sighting {
                file: Some(path),
                lines: Some(LineSpan {
                    first: line.number,
                    last: line.number,
                    columns: None,
                }),
                quote: line.text.as_bytes(),
                replacement: replacement.as_deref(),
                ..Sighting::default()
            };
            let detail = format!("`{version}` can be moved");
            sighting.detail = Some(&detail);
            if !is_branch(version) {
                out.report("workflow-unpinned-action", sighting);
                continue;
            }
            let here = unchanged.get_or_insert_with(|| self.unchanged());
            let is_own = here.is_own(used.owner()) || out.pins().is_own(used.owner());
            // A pin that the change removes counts: it must not excuse the branch in its place.
            let was_pinned = used.project().is_some_and(|p| out.pins().has_pin_of(&p));
            let pins_any = was_pinned || self.pins_others(used.owner());
            let reason = match (is_own, pins_any) {
                (true, _) => Some(OF_OWN),
                (false, false) => Some(AMONG_OTHERS),
                (false, true) => None,
            };
            sighting.message = reason;
            sighting.severity_max = reason.map(|_| Severity::Suggestion);
            out.report("workflow-action-on-branch", sighting);
        }
    }

    /// Returns what the unchanged lines of the workflow show about actions.
    fn unchanged(&self) -> Pins {
        let mut pins = Pins::default();
        for line in self.lines.iter().filter(|l| !l.fresh) {
            pins.learn(line.text);
        }
        pins
    }

    /// Returns true if the workflow pins an action of an owner other than `owner` to a commit.
    fn pins_others(&self, owner: &str) -> bool {
        self.lines
            .iter()
            .filter(|l| is_use(l))
            .filter_map(|l| ActionUse::of(l.value))
            .any(|used| used.is_pinned() && !used.owner().eq_ignore_ascii_case(owner))
    }
}

/// Returns true if a line names an action or a workflow that is used.
fn is_use(line: &YamlLine<'_>) -> bool {
    !line.scalar && line.key == "uses"
}

/// Returns true if an action is in another repository, which GitHub does not maintain, and its
/// version is a name that can be moved.
fn is_movable(used: &ActionUse<'_>) -> bool {
    let is_local = used.action.starts_with("./")
        || used.action.starts_with("docker://")
        || !used.action.contains('/');
    !is_local
        && !used.is_pinned()
        && !FIRST_PARTY.contains(&used.owner())
        && !used.version.contains("${{")
}
