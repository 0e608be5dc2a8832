//! Bitbucket: what every forge has to answer. Not spoken yet.

use super::publish::{Comment, Inline, Status};
use super::{Account, Forge, Listed, PullRequest};
use crate::http::{Cause, Failure, Limits};

pub(super) const TOKEN: (&str, &str) = ("authorization", "Bearer ");
pub(super) const HEADERS: &[(&str, &str)] = &[("accept", "application/json")];

fn unspoken() -> Failure {
    Failure::new(Cause::Setup, "Bitbucket is not spoken yet")
}

pub(super) async fn list(_: &Forge, _: &Limits<'_>) -> Result<(Vec<Listed>, bool), Failure> {
    Err(unspoken())
}

pub(super) async fn read(_: &Forge, _: u64, _: &Limits<'_>) -> Result<PullRequest, Failure> {
    Err(unspoken())
}

pub(super) async fn me(_: &Forge, _: &Limits<'_>) -> Result<Account, Failure> {
    Err(unspoken())
}

pub(super) async fn comments(_: &Forge, _: &PullRequest, _: &Limits<'_>) -> Result<(Vec<Comment>, bool), Failure> {
    Err(unspoken())
}

pub(super) async fn add(_: &Forge, _: &PullRequest, _: &[Inline], _: &Limits<'_>) -> Result<Vec<usize>, Failure> {
    Err(unspoken())
}

pub(super) async fn edit(_: &Forge, _: &PullRequest, _: &Comment, _: &str, _: &Limits<'_>) -> Result<(), Failure> {
    Err(unspoken())
}

pub(super) async fn resolve(_: &Forge, _: &PullRequest, _: &Comment, _: bool, _: &Limits<'_>) -> Result<(), Failure> {
    Err(unspoken())
}

pub(super) async fn summarize(_: &Forge, _: &PullRequest, _: &str, _: &Limits<'_>) -> Result<(), Failure> {
    Err(unspoken())
}

pub(super) async fn newest_status(
    _: &Forge,
    _: &PullRequest,
    _: &str,
    _: &Limits<'_>,
) -> Result<Option<(Account, Status)>, Failure> {
    Err(unspoken())
}

pub(super) async fn set_status(_: &Forge, _: &PullRequest, _: &str, _: &Status, _: &Limits<'_>) -> Result<(), Failure> {
    Err(unspoken())
}
