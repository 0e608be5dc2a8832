//! Variables and payloads in the documented formats of the vendors, with our own values.

use super::*;
use serde_json::{Value, json};
use std::path::PathBuf;

fn env(vars: &[(&str, &str)]) -> Env {
    Env::from_pairs(PathBuf::from("/"), vars.iter().copied())
}

fn hex(digit: char) -> String {
    digit.to_string().repeat(40)
}

fn github(name: &str, payload: &Value, vars: &[(&str, &str)]) -> Result<Event> {
    let all = [
        &[("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_NAME", name)],
        vars,
    ]
    .concat();
    super::github::event(
        &env(&all),
        payload.to_string().as_bytes(),
        Path::new("event.json"),
    )
}

fn ends(event: &Event) -> (End, End) {
    let e = event.ends(None, None, Fetching::Never).unwrap();
    (e.head, e.base)
}

fn is(end: &End, digit: char) -> bool {
    matches!(end, End::Id { id, .. } if *id == hex(digit))
}

fn pull() -> Value {
    json!({
        "action": "synchronize",
        "number": 12,
        "pull_request": {
            "number": 12, "title": "Add a thing", "body": "Because.",
            "head": {"ref": "thing", "sha": hex('a'), "repo": {"full_name": "me/repo"}},
            "base": {"ref": "main", "sha": hex('b'), "repo": {"full_name": "team/repo"}},
        },
        "repository": {"full_name": "team/repo", "default_branch": "main"},
    })
}

#[test]
fn ci_01_a_pull_request_is_its_own_head_against_its_base() {
    for (name, checkout) in [
        ("pull_request", Checkout::Own),
        ("pull_request_review", Checkout::Own),
        ("pull_request_target", Checkout::Foreign),
    ] {
        let event = github(name, &pull(), &[("GITHUB_SHA", &hex('c'))]).unwrap();
        let (head, base) = ends(&event);
        assert!(is(&head, 'a') && is(&base, 'b'), "{event:?}");
        assert_eq!(
            head,
            End::Id {
                id: hex('a'),
                under: Some("refs/pull/12/head".to_owned())
            }
        );
        assert_eq!(
            (event.number, event.is_fork, event.checkout),
            (Some(12), Some(true), checkout)
        );
        assert_eq!(event.summary().as_deref(), Some("Add a thing\n\nBecause."));
        assert_eq!(event.target.as_deref(), Some("main"));
    }
    let mut own = pull();
    own["pull_request"]["head"]["repo"]["full_name"] = json!("team/repo");
    assert_eq!(
        github("pull_request", &own, &[]).unwrap().is_fork,
        Some(false)
    );
    own["pull_request"]["head"]["repo"] = Value::Null;
    assert_eq!(
        github("pull_request", &own, &[]).unwrap().is_fork,
        Some(true)
    );
}

#[test]
fn ci_01_a_push_to_the_default_branch_is_what_went_before_against_what_came_after() {
    let mut push = json!({
        "ref": "refs/heads/main", "before": hex('a'), "after": hex('b'), "created": false, "deleted": false,
        "forced": false, "repository": {"full_name": "team/repo", "default_branch": "main"},
    });
    let event = github("push", &push, &[]).unwrap();
    // There is no substitute for the previous commit, and a push that removes commits has no new
    // ones that could pass.
    let EventChange::Between {
        head,
        base,
        instead: None,
        may_be_empty: None,
    } = &event.change
    else {
        panic!("{event:?}")
    };
    assert!(is(head, 'b') && is(base, 'a'));
    // The very first push.
    push["before"] = json!(hex('0'));
    assert_eq!(ends(&github("push", &push, &[]).unwrap()).1, End::Nothing);
    // A deletion.
    push["after"] = json!(hex('0'));
    push["deleted"] = json!(true);
    assert!(matches!(
        github("push", &push, &[]).unwrap().change,
        EventChange::Deleted(_)
    ));
    // An invalid ID.
    push["after"] = json!("HEAD");
    push["deleted"] = json!(false);
    assert!(github("push", &push, &[]).is_err());
}

#[test]
fn cfg_04_a_push_elsewhere_is_not_measured_against_an_earlier_one() {
    for before in [hex('a'), hex('0')] {
        let mut push = json!({
            "ref": "refs/heads/topic", "before": before, "after": hex('b'), "created": false, "deleted": false,
            "forced": true, "repository": {"full_name": "team/repo", "default_branch": "main"},
        });
        for (name, kind) in [
            ("refs/heads/topic", EventKind::Push),
            ("refs/heads/main/next", EventKind::Push),
            ("refs/tags/v1", EventKind::Tag),
            ("refs/tags/main", EventKind::Tag),
        ] {
            push["ref"] = json!(name);
            let event = github("push", &push, &[]).unwrap();
            let EventChange::Between {
                head,
                base,
                instead: None,
                may_be_empty: Some(_),
            } = &event.change
            else {
                panic!("{event:?}")
            };
            assert!(
                is(head, 'b') && *base == End::Branch("main".to_owned()) && event.kind == kind,
                "{event:?}"
            );
        }
        // Without the name of the default branch, the error lists the options, and the previous
        // commit is never the base.
        push["repository"] = json!({"full_name": "team/repo"});
        let e = github("push", &push, &[])
            .unwrap()
            .ends(None, None, Fetching::Never)
            .unwrap_err();
        assert!(e.hints.iter().any(|h| h.contains("--base")), "{e:?}");
    }
}

#[test]
fn ci_01_a_merge_group_is_its_own_base_and_head() {
    let group = json!({"action": "checks_requested", "merge_group": {
        "head_sha": hex('a'), "head_ref": "refs/heads/gh-readonly-queue/main/pr-1-b",
        "base_sha": hex('b'), "base_ref": "refs/heads/main",
    }});
    let event = github("merge_group", &group, &[]).unwrap();
    let e = event.ends(None, None, Fetching::Never).unwrap();
    assert!(is(&e.head, 'a') && is(&e.base, 'b') && e.may_be_empty.is_none());
    assert_eq!(event.kind, EventKind::Queue);
}

#[test]
fn ci_01_a_job_that_no_change_started_says_what_to_pass() {
    let payload = json!({"repository": {"default_branch": "main"}});
    let on_main = [("GITHUB_REF", "refs/heads/main"), ("GITHUB_SHA", &hex('a'))];
    for name in [
        "schedule",
        "workflow_dispatch",
        "repository_dispatch",
        "label",
    ] {
        let event = github(name, &payload, &on_main).unwrap();
        let e = event.ends(None, None, Fetching::Never).unwrap_err();
        assert!(
            e.hints.iter().any(|h| h.contains("--base")),
            "{name}: {e:?}"
        );
        // Revisions from the command line are used.
        assert_eq!(
            event.ends(None, Some("v1"), Fetching::Never).unwrap().base,
            End::Rev("v1".to_owned())
        );
    }
    let on_topic = [
        ("GITHUB_REF", "refs/heads/topic"),
        ("GITHUB_SHA", &hex('a')),
    ];
    let (head, base) = ends(&github("workflow_dispatch", &payload, &on_topic).unwrap());
    assert!(is(&head, 'a'));
    assert_eq!(base, End::Branch("main".to_owned()));
}

#[test]
fn ci_05_a_workflow_after_another_one_trusts_no_checkout() {
    let mut run = json!({
        "workflow_run": {
            "head_sha": hex('a'), "head_branch": "thing", "event": "pull_request",
            "head_repository": {"full_name": "me/repo"}, "pull_requests": [],
        },
        "repository": {"full_name": "team/repo", "default_branch": "main"},
    });
    let event = github("workflow_run", &run, &[]).unwrap();
    assert_eq!(
        (event.checkout, event.is_fork),
        (Checkout::Foreign, Some(true))
    );
    assert_eq!(ends(&event).1, End::Branch("main".to_owned()));
    run["workflow_run"]["pull_requests"] = json!([{
        "number": 3, "head": {"sha": hex('a'), "ref": "thing"}, "base": {"sha": hex('b'), "ref": "next"},
    }]);
    let event = github("workflow_run", &run, &[]).unwrap();
    assert!(is(&ends(&event).1, 'b'));
    assert_eq!(
        (event.number, event.target.as_deref()),
        (Some(3), Some("next"))
    );
    // An unrelated listed pull request has no effect.
    run["workflow_run"]["pull_requests"][0]["head"]["sha"] = json!(hex('c'));
    let event = github("workflow_run", &run, &[]).unwrap();
    assert_eq!(
        (event.number, ends(&event).1),
        (None, End::Branch("main".to_owned()))
    );
}

#[test]
fn ci_02_hostile_payloads_are_usage_errors_and_hostile_texts_are_capped() {
    for bytes in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"{\"pull_request\":{\"head\":{\"sha\":7}}}",
        &[0xff; 9],
        b"{}",
    ] {
        for name in ["pull_request", "push", "merge_group", "workflow_run"] {
            let e = env(&[("GITHUB_EVENT_NAME", name)]);
            let e = super::github::event(&e, bytes, Path::new("event.json")).unwrap_err();
            assert_eq!(e.kind, crate::error::Kind::Usage);
            assert!(e.message.contains("event.json"), "{e:?}");
        }
    }
    let mut hostile = pull();
    hostile["pull_request"]["title"] = json!("é".repeat(4 << 10));
    hostile["pull_request"]["body"] = json!("x".repeat(1 << 20));
    hostile["pull_request"]["base"]["ref"] = json!("--upload-pack=x");
    let event = github("pull_request", &hostile, &[]).unwrap();
    assert!(event.title.unwrap().len() < MAX_TITLE + 8);
    assert!(event.description.unwrap().len() < MAX_DESCRIPTION + 8);
    assert_eq!(event.target, None);
    hostile["pull_request"]["head"]["sha"] = json!("--output=x");
    assert!(github("pull_request", &hostile, &[]).is_err());
    // Nested too deeply for any parser.
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let e = env(&[("GITHUB_EVENT_NAME", "push")]);
    assert!(super::github::event(&e, deep.as_bytes(), Path::new("event.json")).is_err());
}

#[test]
fn ci_03_gitlab_merge_requests_are_their_source_against_their_target() {
    let (a, b, c, d) = (hex('a'), hex('b'), hex('c'), hex('d'));
    let request = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_EVENT_TYPE", "detached"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &c),
        ("CI_MERGE_REQUEST_REF_PATH", "refs/merge-requests/7/head"),
        ("CI_MERGE_REQUEST_TITLE", "Add a thing"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "1"),
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "2"),
        ("CI_COMMIT_SHA", &a),
        ("CI_COMMIT_BEFORE_SHA", &hex('0')),
        ("CI_SERVER_URL", "https://gitlab.example"),
        ("CI_JOB_TOKEN", "made-up"),
    ];
    let event = detect(&env(&request)).unwrap().unwrap();
    let (head, base) = ends(&event);
    assert_eq!(
        head,
        End::Id {
            id: a.clone(),
            under: Some("refs/merge-requests/7/head".to_owned())
        }
    );
    assert_eq!(base, End::Branch("main".to_owned()));
    assert_eq!(
        (event.number, event.is_fork, event.kind),
        (Some(7), Some(true), EventKind::Request)
    );
    assert_eq!(event.credential.unwrap().url, "https://gitlab.example/");
    // Merged results and merge trains: GitLab creates the commit of the pipeline.
    for (kind, expected) in [
        ("merged_result", EventKind::Request),
        ("merge_train", EventKind::Queue),
    ] {
        let merged = [
            &request[..],
            &[
                ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &*b),
                ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &*d),
            ],
        ]
        .concat();
        let mut merged = merged;
        merged[3].1 = kind;
        let event = detect(&env(&merged)).unwrap().unwrap();
        let (head, base) = ends(&event);
        assert!(is(&head, 'b') && is(&base, 'd'), "{event:?}");
        assert_eq!(event.kind, expected);
    }
}

#[test]
fn ci_03_gitlab_branches_tags_and_schedules() {
    let (a, b, zero) = (hex('a'), hex('b'), hex('0'));
    fn case(source: &str, before: &str, name: (&str, &str)) -> Event {
        let vars = [
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_SOURCE", source),
            ("CI_COMMIT_SHA", &hex('a')),
            ("CI_COMMIT_BEFORE_SHA", before),
            ("CI_DEFAULT_BRANCH", "main"),
            name,
        ];
        detect(&env(&vars)).unwrap().unwrap()
    }
    let (topic, main, tag) = (
        ("CI_COMMIT_BRANCH", "topic"),
        ("CI_COMMIT_BRANCH", "main"),
        ("CI_COMMIT_TAG", "v1"),
    );
    let trunk = End::Branch("main".to_owned());
    assert!(is(&ends(&case("push", &b, main)).1, 'b'));
    assert!(matches!(
        case("push", &b, main).change,
        EventChange::Between {
            may_be_empty: None,
            ..
        }
    ));
    assert_eq!(ends(&case("push", &zero, main)).1, End::Nothing);
    // On other branches, the pusher controls the previous commit.
    for before in [&*b, &*zero] {
        assert_eq!(ends(&case("push", before, topic)).1, trunk);
        assert_eq!(ends(&case("push", before, tag)).1, trunk);
    }
    assert_eq!(ends(&case("schedule", &b, topic)).1, trunk);
    assert_eq!(ends(&case("web", &zero, topic)).1, trunk);
    let unknown = [
        case("schedule", &b, main),
        case("web", &zero, main),
        case("parent_pipeline", &zero, main),
    ];
    for event in unknown
        .into_iter()
        .chain([case("push", "", main), case("push", "HEAD", main)])
    {
        assert!(
            event.ends(None, None, Fetching::Never).is_err(),
            "{event:?}"
        );
    }
    // Without the name of the default branch, any branch could be the default.
    for before in [&*b, &*zero] {
        let vars = [
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_SOURCE", "push"),
            ("CI_COMMIT_SHA", &a),
            ("CI_COMMIT_BEFORE_SHA", before),
            topic,
        ];
        assert!(
            detect(&env(&vars))
                .unwrap()
                .unwrap()
                .ends(None, None, Fetching::Never)
                .is_err()
        );
    }
    assert_eq!(case("schedule", &zero, main).kind, EventKind::Schedule);
}

#[test]
fn ci_03_a_pull_request_of_a_mirrored_project_is_its_source_against_its_target() {
    let (a, b, c) = (hex('a'), hex('b'), hex('c'));
    let mut vars = vec![
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_SOURCE", "external_pull_request_event"),
        ("CI_COMMIT_SHA", &*c),
        ("CI_COMMIT_BRANCH", "thing"),
        ("CI_DEFAULT_BRANCH", "main"),
        ("CI_EXTERNAL_PULL_REQUEST_IID", "3"),
        ("CI_EXTERNAL_PULL_REQUEST_SOURCE_REPOSITORY", "team/repo"),
        ("CI_EXTERNAL_PULL_REQUEST_TARGET_REPOSITORY", "team/repo"),
        ("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME", "thing"),
        ("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA", &*a),
        ("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME", "release/1"),
    ];
    let target = End::Branch("release/1".to_owned());
    assert_eq!(ends(&detect(&env(&vars)).unwrap().unwrap()).1, target);
    vars.push(("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_SHA", &*b));
    let event = detect(&env(&vars)).unwrap().unwrap();
    let (head, base) = ends(&event);
    assert!(
        is(&head, 'a')
            && matches!(&head, End::Id { under: Some(r), .. } if r == "refs/heads/thing"),
        "{head:?}"
    );
    assert_eq!(
        base,
        End::Id {
            id: b.clone(),
            under: Some("refs/heads/release/1".to_owned())
        }
    );
    assert_eq!(
        (event.kind, event.target.as_deref()),
        (EventKind::Request, Some("release/1"))
    );
    // Its number is only valid on the other forge.
    assert_eq!((event.number, event.is_fork), (None, Some(false)));
    vars.retain(|(name, _)| !name.contains("TARGET_BRANCH"));
    assert!(detect(&env(&vars)).is_err());
}

#[test]
fn ci_03_bitbucket_azure_and_jenkins() {
    let (a, b) = (hex('a'), hex('b'));
    fn of(vars: &[(&str, &str)]) -> Event {
        detect(&env(vars)).unwrap().unwrap()
    }
    fn abbreviated(id: &str, name: &str) -> End {
        End::Short {
            id: id[..12].to_owned(),
            under: Some(name.to_owned()),
        }
    }
    fn is_empty_ok(event: &Event) -> bool {
        event
            .ends(None, None, Fetching::Never)
            .unwrap()
            .may_be_empty
            .is_some()
    }
    let bucket = [
        ("BITBUCKET_BUILD_NUMBER", "1"),
        ("BITBUCKET_COMMIT", &*a),
        ("BITBUCKET_BRANCH", "thing"),
    ];
    assert!(of(&bucket).ends(None, None, Fetching::Never).is_err());
    let request = [
        &bucket[..],
        &[
            ("BITBUCKET_PR_ID", "4"),
            ("BITBUCKET_PR_DESTINATION_BRANCH", "main"),
        ],
    ]
    .concat();
    let (head, base) = ends(&of(&request));
    assert!(is(&head, 'a'));
    assert_eq!(base, End::Branch("main".to_owned()));
    let full = [&request[..], &[("BITBUCKET_PR_DESTINATION_COMMIT", &*b)]].concat();
    assert!(is(&ends(&of(&full)).1, 'b'));
    // Abbreviated to twelve digits, as in reality.
    let mut short = [
        &request[..],
        &[("BITBUCKET_PR_DESTINATION_COMMIT", &b[..12])],
    ]
    .concat();
    short[1].1 = &a[..12];
    let event = of(&short);
    assert_eq!(
        ends(&event),
        (
            abbreviated(&a, "refs/heads/thing"),
            End::Branch("main".to_owned())
        )
    );
    let EventChange::Between {
        instead: Some(instead),
        ..
    } = event.change
    else {
        panic!("{event:?}")
    };
    assert_eq!(instead, abbreviated(&b, "refs/heads/main"));
    for none in [&a[..6], "HEAD", "aaaaaaaaaaag", &hex('0')[..12], ""] {
        short[1].1 = none;
        assert!(detect(&env(&short)).is_err(), "{none}");
    }

    let azure = [
        ("TF_BUILD", "True"),
        ("BUILD_SOURCEVERSION", &*a),
        ("BUILD_REASON", "IndividualCI"),
    ];
    assert!(of(&azure).ends(None, None, Fetching::Never).is_err());
    for target in ["refs/heads/main", "main"] {
        let request = [
            &azure[..],
            &[
                ("SYSTEM_PULLREQUEST_TARGETBRANCH", target),
                ("SYSTEM_PULLREQUEST_SOURCECOMMITID", &*b),
                ("SYSTEM_PULLREQUEST_PULLREQUESTID", "9"),
                ("SYSTEM_PULLREQUEST_ISFORK", "True"),
            ],
        ]
        .concat();
        let event = of(&request);
        let (head, base) = ends(&event);
        assert!(is(&head, 'b'));
        assert_eq!(
            (base, event.number, event.is_fork),
            (End::Branch("main".to_owned()), Some(9), Some(true))
        );
    }

    let jenkins = [("JENKINS_URL", "https://j.example/"), ("GIT_COMMIT", &*a)];
    assert!(of(&jenkins).ends(None, None, Fetching::Never).is_err());
    // A success on another branch only passed the policy of its author.
    let built = [&jenkins[..], &[("GIT_PREVIOUS_SUCCESSFUL_COMMIT", &*b)]].concat();
    assert!(of(&built).ends(None, None, Fetching::Never).is_err());
    let mut built = [&built[..], &[("BRANCH_IS_PRIMARY", "true")]].concat();
    assert!(is(&ends(&of(&built)).1, 'b'));
    assert!(!is_empty_ok(&of(&built)), "a branch that went back");
    built[2].1 = &a;
    assert!(is_empty_ok(&of(&built)), "another build of the same commit");
    let request = [
        &jenkins[..],
        &[("CHANGE_TARGET", "main"), ("CHANGE_ID", "5")],
    ]
    .concat();
    assert_eq!(ends(&of(&request)).1, End::Branch("main".to_owned()));
}

#[test]
fn ci_03_nothing_known_is_nothing_detected() {
    assert_eq!(detect(&env(&[("CI", "true")])).unwrap(), None);
    for vars in [
        &[("GITLAB_CI", "true")][..],
        &[("TF_BUILD", "True")],
        &[("BITBUCKET_BUILD_NUMBER", "1")],
    ] {
        assert!(detect(&env(vars)).is_err(), "{vars:?}");
    }
    // A system without an event is an error. No other system is tried.
    assert!(detect(&env(&[("GITHUB_ACTIONS", "true"), ("GITLAB_CI", "true")])).is_err());
}

#[test]
fn explicit_ends_go_before_the_events() {
    let event = github("pull_request", &pull(), &[]).unwrap();
    let e = event.ends(Some("topic"), None, Fetching::Missing).unwrap();
    assert!(e.head == End::Rev("topic".to_owned()) && is(&e.base, 'b') && e.may_be_empty.is_none());
    let e = event.ends(None, Some("v1"), Fetching::Missing).unwrap();
    assert!(is(&e.head, 'a') && e.base == End::Rev("v1".to_owned()));
}
