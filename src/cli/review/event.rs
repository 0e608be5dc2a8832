//! The default change of `review` and `review branch`: in CI, from the event.

use super::Options;
use crate::ci::{self, EventChange};
use crate::cli::Context;
use crate::error::{Error, Result};
use crate::request::{Checkout, End, Ends, Fetching, PushRange, Source};

/// The change that an event names.
pub(super) struct NamedChange {
    pub(super) source: Source,
    /// Title and description of the pull request, by its author.
    pub(super) summary: Option<String>,
}

/// Finds the ends of the change; `None` outside of CI without `--fetch`, where the clone determines
/// them.
///
/// In CI the event is read even if both ends are given: it determines who controls the files of the
/// worktree.
///
/// # Errors
/// Usage: in CI, if the change is unknown. An unknown change never counts as empty.
pub(super) fn of(
    context: &Context,
    o: &Options,
    head: Option<&str>,
    base: Option<&str>,
) -> Result<Option<NamedChange>> {
    let (env, fetching) = (
        &context.env,
        if o.fetch {
            Fetching::Missing
        } else {
            Fetching::Never
        },
    );
    if o.follow_up.is_some() {
        // The session determines its change.
        return Ok(None);
    }
    let event = match (head, base) {
        _ if !env.is_ci() => Ok(None),
        // If both ends are given, the event only determines the trust in the checkout: none if it
        // cannot be read.
        (Some(_), Some(_)) => ci::detect(env).map_err(|_| Checkout::Foreign),
        _ => Ok(ci::detect(env)?),
    };
    let (checkout, credential) = match &event {
        Ok(Some(event)) => (event.checkout, event.credential.clone()),
        Ok(None) => (Checkout::Own, None),
        Err(checkout) => (*checkout, None),
    };
    if o.no_gate && checkout == Checkout::Foreign {
        return Err(
            Error::usage("--no-gate lets a stranger's change choose its own policy here").hint(
                "this job has rights that the author of the change lacks; leave --no-gate out",
            ),
        );
    }
    match (
        event
            .ok()
            .flatten()
            .filter(|_| head.is_none() || base.is_none()),
        head,
        base,
    ) {
        (Some(event), head, base) => {
            if let (EventChange::Deleted(name), None, None) = (&event.change, head, base) {
                let zeros = "0".repeat(40);
                let range = PushRange {
                    local: zeros.clone(),
                    remote: zeros,
                    name: name.clone(),
                    to: None,
                };
                return Ok(Some(NamedChange {
                    source: Source::Push(vec![range]),
                    summary: None,
                }));
            }
            let source = Source::Ends(Box::new(event.ends(head, base, fetching)?));
            Ok(Some(NamedChange {
                source,
                summary: event.summary(),
            }))
        }
        (None, _, None) if env.is_ci() => Err(ci::unnamed(
            "CI is set, but the environment is not GitHub, GitLab, Bitbucket, Azure or Jenkins",
        )),
        (None, _, None) if fetching == Fetching::Missing => {
            Err(Error::usage("--fetch needs a base to compare with").hint("name it: --base REV"))
        }
        (None, head, Some(base)) if fetching == Fetching::Missing || env.is_ci() => {
            let head = head.unwrap_or("HEAD");
            let ends = Ends {
                label: head.to_owned(),
                is_pull: false,
                head: End::Rev(head.to_owned()),
                base: End::Rev(base.to_owned()),
                instead: None,
                // A user sees that nothing was reviewed; a pipeline would pass.
                may_be_empty: (!env.is_ci() && !o.gate)
                    .then(|| "the base has all of the head".to_owned()),
                remote: "origin".to_owned(),
                fetching,
                credential,
                checkout,
            };
            Ok(Some(NamedChange {
                source: Source::Ends(Box::new(ends)),
                summary: None,
            }))
        }
        (None, _, _) => Ok(None),
    }
}
