//! Writes to GitLab: discussions on lines, a note for the summary, a commit status.

use super::{Gitlab, JOB_VARIABLE, is_of_job, pages, path, path_of};
use crate::diff::ObjectId;
use crate::forge::added::Added;
use crate::forge::api::ReviewWriter;
use crate::forge::lines::{CommentSpot, NewSideLine};
use crate::forge::publish::{
    Comment, CommentPlace, CommitStatus, ExistingStatus, InlineComment, StatusState,
};
use crate::forge::session::ForgeSession;
use crate::forge::{Account, PullRequest, Reads};
use crate::git;
use crate::http::{Cause, Failure, Method};
use serde_json::{Value, json};

/// Discussions of a merge request that are read, at most.
pub(super) const MOST: usize = 3000;
/// Characters of a status description, at most.
const MOST_OF_A_STATUS: usize = 255;
/// Prefix of the description of an incomplete review's status: GitLab has the same state for
/// incomplete and blocked.
const INCOMPLETE: &str = "incomplete";

impl ReviewWriter for Gitlab {
    /// Rejects a token that has no write access.
    fn check_may_write(&self, session: &ForgeSession<'_>) -> Result<(), Failure> {
        if !is_of_job(session) {
            return Ok(());
        }
        let message = format!(
            "the token of a job ({JOB_VARIABLE}) can read a merge request but not write to it"
        );
        let hint = "set GITLAB_TOKEN to an access token of the project, with the scope api and the role Developer";
        Err(Failure::new(Cause::Setup, message).hint(hint))
    }

    /// Returns the account of the token. The token of a project or group has an account of its own.
    fn token_account(&self, session: &ForgeSession<'_>) -> Result<Account, Failure> {
        let user = session.get(&["user"], &[])?;
        Ok(Account {
            id: user.number_at("/id")?.to_string(),
            name: user.name_at("/username"),
        })
    }

    /// Lists the first notes of discussions, on lines and below the merge request. The flag is false if
    /// there are more.
    fn comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<Comment>, bool), Failure> {
        let pages = pages(session, &discussions(session, pull, &[]), &[], MOST)?;
        let mut out = Vec::new();
        for discussion in &pages.items {
            // System notes name the account that did something, and are not written by it.
            let Some(note) = discussion["notes"]
                .get(0)
                .filter(|note| note["system"] != true)
            else {
                continue;
            };
            out.push(Comment {
                id: note.number_at("/id")?.to_string(),
                author: account(note, "/author"),
                body: note["body"].as_str().unwrap_or_default().to_owned(),
                is_inline: note["type"] == "DiffNote",
                place: place(note, pull.head.id),
                thread: discussion.name_at("/id"),
                resolved: note["resolved"] == true,
                version: 0,
            });
        }
        Ok((out, !pages.more))
    }

    /// Writes new discussions on lines.
    fn add_comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        inline: &[InlineComment],
    ) -> Added {
        let mut added = Added::default();
        let refs = match current(session, pull) {
            Ok(mut current) => current["diff_refs"].take(),
            Err(failure) => return added.ends(failure),
        };
        let path = discussions(session, pull, &[]);
        for (i, inline) in inline.iter().enumerate() {
            let body = json!({ "body": inline.body, "position": position(&inline.spot, &refs) });
            match session.make(&path, &body) {
                Ok(_) => added.placed += 1,
                Err(failure) if has_no_place(&failure) => added.unplaced.push(i),
                Err(failure) => return added.ends(failure),
            }
        }
        added
    }

    /// Replaces the text of a note.
    fn edit_comment(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        body: &str,
    ) -> Result<(), Failure> {
        let path = if comment.is_inline {
            discussions(session, pull, &[&comment.thread, "notes", &comment.id])
        } else {
            below(session, pull, "notes", &[&comment.id])
        };
        session
            .change(Method::PUT, &path, &json!({ "body": body }))
            .map(drop)
    }

    /// Resolves a discussion, or reopens it. GitLab requires the role Developer, or the author of the
    /// change.
    fn resolve_conversation(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
    ) -> Result<(), Failure> {
        let path = discussions(session, pull, &[&comment.thread]);
        session
            .change(Method::PUT, &path, &json!({ "resolved": resolved }))
            .map(drop)
    }

    /// Writes the summary below the merge request, as a note, which does not need to be resolved.
    fn write_summary(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        body: &str,
    ) -> Result<(), Failure> {
        let path = below(session, pull, "notes", &[]);
        session.make(&path, &json!({ "body": body })).map(drop)
    }

    /// Returns the newest status of the head under a name, with its author.
    fn newest_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
    ) -> Result<Option<ExistingStatus>, Failure> {
        let place = Home::of(&current(session, pull)?, pull.head.id)?;
        let path = path_of(
            &place.project,
            &[
                "repository",
                "commits",
                &pull.head.id.to_string(),
                "statuses",
            ],
        );
        let pages = pages(session, &path, &[("name", context)], MOST)?;
        let own = pages
            .items
            .iter()
            .filter(|s| s["name"] == context && place.may_have(s));
        let newest = own.max_by_key(|s| s["id"].as_u64());
        Ok(newest.map(|s| {
            let description = s.name_at("/description");
            let state = match s["status"].as_str() {
                Some("success") => StatusState::Success,
                Some("failed") if !description.starts_with(INCOMPLETE) => StatusState::Failure,
                _ => StatusState::Incomplete,
            };
            ExistingStatus {
                by: Some(account(s, "/author")),
                status: CommitStatus { state, description },
            }
        }))
    }

    /// Sets the status of the head under a name.
    fn set_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
        status: &CommitStatus,
    ) -> Result<(), Failure> {
        let place = Home::of(&current(session, pull)?, pull.head.id)?;
        let state = match status.state {
            StatusState::Success => "success",
            StatusState::Failure | StatusState::Incomplete => "failed",
        };
        let description: String = status.description.chars().take(MOST_OF_A_STATUS).collect();
        let mut body = json!({ "state": state, "name": context, "description": description });
        match place.pipeline {
            Some(pipeline) => body["pipeline_id"] = json!(pipeline),
            None => body["ref"] = json!(pull.head.name),
        }
        let path = path_of(&place.project, &["statuses", &pull.head.id.to_string()]);
        // Setting it twice updates the same status.
        match session.change(Method::POST, &path, &body) {
            // GitLab waited for a concurrent request to set a status, and asks to retry.
            Err(failure) if failure.status == Some(409) => {
                session.change(Method::POST, &path, &body).map(drop)
            }
            done => done.map(drop),
        }
    }
}

/// Reads an account; empty if there is none.
pub(super) fn account(of: &Value, pointer: &str) -> Account {
    let id = of
        .number_at(&format!("{pointer}/id"))
        .map(|id| id.to_string())
        .unwrap_or_default();
    Account {
        id,
        name: of.name_at(&format!("{pointer}/username")),
    }
}

/// Reads the position of a note. GitLab tracks its line across pushes. Once the line is changed,
/// the position stays in the diff of an older head. Suggestions count from the last line, so the
/// first line is unknown.
fn place(note: &Value, head: ObjectId) -> CommentPlace {
    let Some(position) = note.get("position").filter(|p| p.is_object()) else {
        return CommentPlace::Unknown;
    };
    if !position.id_at("/head_sha").is_ok_and(|id| id == head) {
        return CommentPlace::Gone;
    }
    CommentPlace::of(
        position["new_path"].as_str().unwrap_or_default().to_owned(),
        None,
        position["new_line"].as_u64(),
    )
}

/// Returns the path of the discussions, or of one of them.
pub(super) fn discussions(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    rest: &[&str],
) -> Vec<String> {
    below(session, pull, "discussions", rest)
}

/// Returns the path of a resource of the merge request.
pub(super) fn below(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    kind: &str,
    rest: &[&str],
) -> Vec<String> {
    let number = pull.number.to_string();
    path(
        session,
        &[&["merge_requests", &number, kind], rest].concat(),
    )
}

/// Reads the current merge request.
///
/// # Errors
///
/// Also fails if its head is not the one that was reviewed.
fn current(session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Value, Failure> {
    let path = path(session, &["merge_requests", &pull.number.to_string()]);
    let current = session.get(&path, &[])?;
    if current.id_at("/sha")? != pull.head.id
        || current.id_at("/diff_refs/head_sha")? != pull.head.id
    {
        let failure = Failure::new(
            Cause::Malformed,
            "its head, or GitLab's diff of it, is not what was reviewed",
        );
        return Err(failure.hint("review it again"));
    }
    Ok(current)
}

/// Returns true if GitLab does not know the line of a note:
/// `Note {:line_code=>["can't be blank", …]}`, `position[new_line] is invalid`.
fn has_no_place(failure: &Failure) -> bool {
    let said = failure.message.as_str();
    matches!(failure.status, Some(400 | 422))
        && ["line_code", "position"]
            .iter()
            .any(|word| said.contains(word))
}

/// Returns the position of a discussion in the diff: its last line, and its range if it has several
/// lines.
fn position(spot: &CommentSpot, refs: &Value) -> Value {
    let mut position = json!({
        "position_type": "text",
        "base_sha": refs["base_sha"],
        "start_sha": refs["start_sha"],
        "head_sha": refs["head_sha"],
        // GitLab requires both paths, also for a new file.
        "old_path": spot.old_path.as_ref().unwrap_or(&spot.path),
        "new_path": spot.path,
        "new_line": spot.last.new,
    });
    if let Some(old) = spot.last.old {
        position["old_line"] = json!(old);
    }
    if spot.first.new < spot.last.new
        && let Some(file) = git::sha1_hex(spot.path.as_bytes())
    {
        position["line_range"] =
            json!({ "start": end(spot, spot.first, &file), "end": end(spot, spot.last, &file) });
    }
    position
}

/// Formats a line like the page of a diff: the file's hash, and the line numbers of both sides.
fn end(spot: &CommentSpot, at: NewSideLine, file: &str) -> Value {
    let old = match at.old {
        Some(old) => old,
        // The old line is 0 for a new file, and otherwise the following old line.
        None if spot.old_path.is_none() => 0,
        None => at.behind + 1,
    };
    let mut end = json!({ "line_code": format!("{file}_{old}_{}", at.new), "new_line": at.new });
    match at.old {
        Some(old) => end["old_line"] = json!(old),
        None => end["type"] = json!("new"),
    }
    end
}

/// The project and pipeline of a head's status.
#[derive(Debug, PartialEq, Eq)]
struct Home {
    /// Number of the project that has the branch, or runs its pipeline.
    project: String,
    /// Pipeline of the head, if there is one.
    pipeline: Option<u64>,
}

impl Home {
    /// Reads it from a merge request: the commit must be in the project of the source branch, which
    /// may be a fork.
    fn of(current: &Value, head: ObjectId) -> Result<Self, Failure> {
        let pipeline = &current["head_pipeline"];
        if pipeline.id_at("/sha").is_ok_and(|id| id == head)
            && let (Ok(id), Ok(project)) =
                (pipeline.number_at("/id"), pipeline.number_at("/project_id"))
        {
            return Ok(Self {
                project: project.to_string(),
                pipeline: Some(id),
            });
        }
        Ok(Self {
            project: current.number_at("/source_project_id")?.to_string(),
            pipeline: None,
        })
    }

    /// Returns false for a status of another pipeline: each pipeline has a status of its own.
    fn may_have(&self, status: &Value) -> bool {
        match (self.pipeline, status["pipeline_id"].as_u64()) {
            (Some(here), Some(there)) => here == there,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Home, has_no_place, position};
    use crate::diff::ObjectId;
    use crate::forge::lines::{CommentSpot, NewSideLine};
    use crate::http::{Cause, Failure};
    use serde_json::{Value, json};

    fn at(new: u32, old: Option<u32>, behind: u32) -> NewSideLine {
        NewSideLine { new, old, behind }
    }

    fn spot(old_path: Option<&str>, first: NewSideLine, last: NewSideLine) -> CommentSpot {
        let old_path = old_path.map(str::to_owned);
        CommentSpot {
            path: "a/new.rs".to_owned(),
            old_path,
            first,
            last,
            whole: true,
        }
    }

    /// Hash of `a/new.rs`.
    const FILE: &str = "6fa54a609a189d00a165e3896a65f904b4a013fe";

    #[test]
    fn a_place_is_named_as_gitlab_names_it() {
        let refs = json!({ "base_sha": "b", "start_sha": "s", "head_sha": "h" });
        // An added line has no old number.
        let added = at(11, None, 11);
        assert_eq!(
            position(&spot(Some("old.rs"), added, added), &refs),
            common("old.rs", 11)
        );
        // An unchanged line has both numbers.
        let kept = at(13, Some(12), 12);
        let mut expected = common("old.rs", 13);
        expected["old_line"] = json!(12);
        assert_eq!(position(&spot(Some("old.rs"), kept, kept), &refs), expected);
        // Several lines.
        expected["line_range"] = json!({
            "start": { "line_code": format!("{FILE}_12_11"), "type": "new", "new_line": 11 },
            "end": { "line_code": format!("{FILE}_12_13"), "new_line": 13, "old_line": 12 },
        });
        assert_eq!(
            position(&spot(Some("old.rs"), added, kept), &refs),
            expected
        );
        // A new file.
        let mut expected = common("a/new.rs", 2);
        expected["line_range"] = json!({
            "start": { "line_code": format!("{FILE}_0_1"), "type": "new", "new_line": 1 },
            "end": { "line_code": format!("{FILE}_0_2"), "type": "new", "new_line": 2 },
        });
        assert_eq!(
            position(&spot(None, at(1, None, 0), at(2, None, 0)), &refs),
            expected
        );
    }

    /// Returns the position of an added line.
    fn common(old: &str, line: u32) -> Value {
        json!({
            "position_type": "text", "base_sha": "b", "start_sha": "s", "head_sha": "h",
            "old_path": old, "new_path": "a/new.rs", "new_line": line,
        })
    }

    #[test]
    fn ci_07_only_what_has_no_place_goes_elsewhere() {
        fn failure(status: u16, said: &str) -> Failure {
            let mut failure = Failure::new(Cause::Refused, format!("{status}: {said}"));
            failure.status = Some(status);
            failure
        }
        for said in [
            "400 Bad request - Note {:line_code=>[\"can't be blank\"]}",
            "position[new_line] is invalid",
        ] {
            assert!(has_no_place(&failure(400, said)), "{said}");
        }
        for (status, said) in [
            (400, "body is missing"),
            (403, "line_code"),
            (500, "position"),
        ] {
            assert!(!has_no_place(&failure(status, said)), "{said}");
        }
    }

    #[test]
    fn a_status_belongs_to_the_pipeline_of_the_head_or_to_the_source() {
        let head = ObjectId::from_hex(&"1".repeat(40)).unwrap();
        let own = json!({ "id": 9, "project_id": 4, "sha": "1".repeat(40) });
        // The pipeline of a merge result is about another commit.
        let other = json!({ "id": 9, "project_id": 4, "sha": "2".repeat(40) });
        for (pipeline, project, id) in [
            (json!(null), "5", None),
            (own, "4", Some(9)),
            (other, "5", None),
        ] {
            let place = Home::of(
                &json!({ "source_project_id": 5, "head_pipeline": pipeline }),
                head,
            )
            .unwrap();
            assert_eq!((place.project, place.pipeline), (project.to_owned(), id));
        }
        assert!(Home::of(&json!({ "source_project_id": null }), head).is_err());
    }
}
