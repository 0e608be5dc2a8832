//! Tests of the chain over sessions: a removed or truncated session is reported by name.

use super::kit::{Yard, append, child, closing, create, day, id};
use claude_reviewer::history::{SessionId, Store};
use claude_reviewer::wire::stored::Status;
use serde_json::{Value, json};

/// Creates a store with sessions of the first days of January 2026.
fn yard(days: u32) -> (Yard, Vec<SessionId>) {
    let yard = Yard::new();
    let ids = (1..=days)
        .map(|n| create(&yard.store(), day(n), 0).unwrap().id)
        .collect();
    (yard, ids)
}

/// Returns the problems, as `ID: why`.
fn wrong(store: &Store) -> Vec<String> {
    let all = store.verify(None, None).unwrap();
    all.iter()
        .flat_map(|c| {
            c.edits
                .iter()
                .map(move |e| format!("{}: {}{}", c.id, e.file, e.why))
        })
        .collect()
}

/// Returns a session's records of the earlier ones.
fn before(yard: &Yard, id: &SessionId) -> Value {
    let text = std::fs::read(yard.path(&format!("sessions/{id}/request.json"))).unwrap();
    serde_json::from_slice::<Value>(&text).unwrap()["before"].clone()
}

fn remove(yard: &Yard, id: &SessionId) {
    std::fs::remove_dir_all(yard.path(&format!("sessions/{id}"))).unwrap();
}

#[test]
fn a_session_records_the_heads_of_what_was_touched_before_it() {
    let (yard, ids) = yard(2);
    assert_eq!(before(&yard, &ids[0]), json!([]));
    let head = |id: &SessionId| yard.store().session(id).unwrap().head;
    assert_eq!(
        before(&yard, &ids[1]),
        json!([{"review_id": ids[0].to_string(), "head": head(&ids[0])}])
    );
    append(&yard.store(), &ids[0], day(2)).unwrap();
    yard.store()
        .complete(&ids[1], closing(Status::Merged), false)
        .unwrap();
    let third = create(&yard.store(), day(3), 0).unwrap().id;
    let expected =
        [&ids[1], &ids[0]].map(|id| json!({"review_id": id.to_string(), "head": head(id)}));
    assert_eq!(before(&yard, &third), json!(expected));
    // It is reported once.
    let fourth = create(&yard.store(), day(4), 0).unwrap().id;
    assert_eq!(
        before(&yard, &fourth),
        json!([{"review_id": third.to_string(), "head": head(&third)}])
    );
    assert_eq!(wrong(&yard.store()), [""; 0]);
}

#[test]
fn a_session_that_was_removed_from_between_others_is_named() {
    let (yard, ids) = yard(4);
    remove(&yard, &ids[1]);
    assert_eq!(
        wrong(&yard.store()),
        [format!("{}: missing, but {} refers to it", ids[1], ids[2])]
    );
    // Independent of later sessions.
    create(&yard.store(), day(5), 0).unwrap();
    assert_eq!(wrong(&yard.store()).len(), 1);
    // The oldest one may be removed, by hand or by pruning, and with it its records.
    remove(&yard, &ids[0]);
    assert_eq!(wrong(&yard.store()), [""; 0]);
}

#[test]
fn the_newest_session_that_was_removed_is_named_as_long_as_something_tells_of_it() {
    let (yard, ids) = yard(3);
    remove(&yard, &ids[2]);
    assert_eq!(
        wrong(&yard.store()),
        [format!(
            "{}: missing, but .reviews/latest.json refers to it",
            ids[2]
        )]
    );
    assert_eq!(
        yard.store().latest().unwrap(),
        Some(ids[1]),
        "STO-07: what it points to is not there"
    );
}

#[test]
fn pruning_makes_no_hole() {
    let (yard, ids) = yard(6);
    append(&yard.store(), &ids[0], day(7)).unwrap();
    create(&yard.store(), day(7), 0).unwrap();
    for keep in [5, 3, 1] {
        yard.store().prune(keep, day(8)).unwrap();
        assert_eq!(wrong(&yard.store()), [""; 0], "{keep}");
    }
    yard.store().prune(0, day(8)).unwrap();
    assert_eq!(wrong(&yard.store()), [""; 0]);
    create(&yard.store(), day(9), 0).unwrap();
    create(&yard.store(), day(9), 0).unwrap();
    assert_eq!(wrong(&yard.store()), [""; 0]);
}

#[test]
fn a_round_or_a_closing_that_was_cut_off_an_earlier_session_is_named() {
    let cuts: [fn(&std::path::Path); 2] = [
        |s| std::fs::remove_file(s.join("complete.json")).unwrap(),
        |s| {
            std::fs::remove_file(s.join("complete.json")).unwrap();
            std::fs::remove_dir_all(s.join("round-2")).unwrap();
            std::fs::remove_file(s.join("round-1/response.json")).unwrap();
        },
    ];
    // Continued before the next session began, after that, and without a next one.
    for when in 0..3 {
        for cut in cuts {
            let (yard, ids) = yard(2);
            let work = || {
                append(&yard.store(), &ids[1], day(2)).unwrap();
                yard.store()
                    .complete(&ids[1], closing(Status::Approved), false)
                    .unwrap();
            };
            if when == 0 {
                work();
            }
            create(&yard.store(), day(3), 0).unwrap();
            if when > 0 {
                work();
            }
            if when == 1 {
                create(&yard.store(), day(4), 0).unwrap();
            }
            assert_eq!(wrong(&yard.store()), [""; 0]);
            let head = yard.store().session(&ids[1]).unwrap().head;
            cut(&yard.path(&format!("sessions/{}", ids[1])));
            let wrong = wrong(&yard.store());
            let [one] = wrong.as_slice() else {
                panic!("{when}: {wrong:?}")
            };
            assert!(
                one.starts_with(&format!("{}: ", ids[1])) && one.contains(&head),
                "{when}: {one}"
            );
            assert!(one.contains("truncated or rewritten"), "{one}");
            // Also on its own, as for an approval and a follow-up.
            assert!(
                yard.store()
                    .edited(&ids[1])
                    .unwrap()
                    .unwrap()
                    .contains("truncated or rewritten"),
                "{when}"
            );
            let others: Vec<_> = ids.iter().filter(|i| **i != ids[1]).collect();
            assert!(
                others
                    .iter()
                    .all(|i| yard.store().edited(i).unwrap().is_none())
            );
        }
    }
}

#[test]
fn what_an_edited_session_says_of_others_is_not_believed() {
    let (yard, ids) = yard(3);
    let path = yard.path(&format!("sessions/{}/request.json", ids[2]));
    let mut request: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    request["before"][0]["head"] = "0".repeat(64).into();
    std::fs::write(&path, request.to_string()).unwrap();
    let wrong = wrong(&yard.store());
    assert!(
        wrong.iter().all(|w| w.starts_with(&ids[2].to_string())) && !wrong.is_empty(),
        "{wrong:?}"
    );
    assert_eq!(yard.store().edited(&ids[1]).unwrap(), None);
}

#[test]
fn sessions_of_older_programs_say_nothing_and_are_whole() {
    let (yard, ids) = yard(1);
    // As an earlier program wrote them: without records of other sessions.
    let session = yard.path(&format!("sessions/{}", ids[0]));
    let text = std::fs::read_to_string(session.join("request.json")).unwrap();
    let mut request: Value = serde_json::from_str(&text).unwrap();
    request.as_object_mut().unwrap().remove("before").unwrap();
    std::fs::write(session.join("request.json"), request.to_string()).unwrap();
    let read = yard.store().session(&ids[0]).unwrap();
    assert_eq!(read.request.before, []);
    let latest = std::fs::read_to_string(yard.path("latest.json")).unwrap();
    let mut latest: Value = serde_json::from_str(&latest).unwrap();
    latest.as_object_mut().unwrap().remove("since").unwrap();
    std::fs::write(yard.path("latest.json"), latest.to_string()).unwrap();
    let second = create(&yard.store(), day(2), 0).unwrap().id;
    assert_eq!(before(&yard, &second)[0]["review_id"], ids[0].to_string());
    assert_eq!(yard.store().latest().unwrap(), Some(second));
}

#[test]
fn sto_04_of_sessions_that_begin_at_once_each_tells_of_the_one_before() {
    let yard = Yard::new();
    let children: Vec<_> = (0..8).map(|_| child("create", yard.top(), &[])).collect();
    for child in children {
        let out = child.wait_with_output().unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    let all: Vec<_> = (1..=8).map(|n| id(&format!("2026-01-20-{n:03}"))).collect();
    for two in all.windows(2) {
        let head = yard.store().session(&two[0]).unwrap().head;
        assert_eq!(
            before(&yard, &two[1]),
            json!([{"review_id": two[0].to_string(), "head": head}])
        );
    }
    assert_eq!(wrong(&yard.store()), [""; 0]);
}

#[test]
fn where_git_keeps_the_store_what_another_branch_has_is_no_hole() {
    let yard = Yard::new();
    let mut place = yard.place();
    place.history.commit = true;
    let store = || Store::open(&place).unwrap();
    let first = create(&store(), day(1), 0).unwrap().id;
    let second = create(&store(), day(2), 0).unwrap().id;
    append(&store(), &first, day(2)).unwrap();
    // Another branch is checked out: the second session is missing, and the first has one round.
    let away = yard.top().join("away");
    std::fs::rename(yard.path(&format!("sessions/{second}")), &away).unwrap();
    std::fs::remove_dir_all(yard.path(&format!("sessions/{first}/round-2"))).unwrap();
    std::fs::remove_file(yard.path(&format!("sessions/{first}/round-1/response.json"))).unwrap();
    assert_eq!(wrong(&store()), [""; 0]);
    let third = create(&store(), day(3), 0).unwrap().id;
    assert_eq!(before(&yard, &third)[0]["review_id"], first.to_string());
    // After a merge, all of them exist.
    std::fs::rename(&away, yard.path(&format!("sessions/{second}"))).unwrap();
    assert_eq!(wrong(&store()), [""; 0]);
    // A missing session between the others is reported.
    remove(&yard, &first);
    assert_eq!(wrong(&store()), [""; 0], "the oldest");
    create(&store(), day(4), 0).unwrap();
    remove(&yard, &third);
    assert_eq!(wrong(&store()).len(), 1);
}

#[test]
fn sto_06_a_damaged_session_is_told_until_it_is_removed_and_is_no_hole() {
    let (yard, ids) = yard(4);
    std::fs::write(yard.path(&format!("sessions/{}/request.json", ids[1])), "{").unwrap();
    let why = |text: &str| text.contains(&format!("{}/request.json: EOF", ids[1]));
    for _ in 0..3 {
        let history = yard.store().list(1000).unwrap();
        let [damaged] = history.damaged.as_slice() else {
            panic!("{:?}", history.damaged)
        };
        assert!(
            damaged.review_id == ids[1].to_string() && why(&damaged.why),
            "{damaged:?}"
        );
        assert_eq!(damaged.moved_to, Some(format!(".corrupt/{}", ids[1])));
        let wrong = wrong(&yard.store());
        let [one] = wrong.as_slice() else {
            panic!("{wrong:?}")
        };
        assert!(one.contains("it was damaged") && why(one), "{one}");
    }
    let gone = yard.store().discard(day(5)).unwrap();
    assert_eq!(gone, [ids[1].to_string()]);
    assert_eq!(wrong(&yard.store()), [""; 0]);
    assert_eq!(yard.store().list(1000).unwrap().damaged, []);
    let all = yard.store().verify(None, None).unwrap();
    let recorded = all
        .iter()
        .find(|c| c.id == ids[1].to_string())
        .and_then(|c| c.removed.as_deref())
        .unwrap();
    assert!(
        recorded.contains("2026-01-05") && why(recorded),
        "{recorded}"
    );
    let error = yard.store().session(&ids[1]).unwrap_err();
    assert!(
        error.hints.join(" ").contains("it was damaged")
            && error.message.contains(&ids[1].to_string()),
        "{error:?}"
    );
    // Its record is removed with the sessions that contain it.
    yard.store().prune(1, day(5)).unwrap();
    assert!(
        !yard.files().iter().any(|f| f.starts_with(".corrupt")),
        "{:?}",
        yard.files()
    );
    assert_eq!(yard.store().discard(day(5)).unwrap(), [""; 0]);
}

#[test]
fn sto_06_latest_is_refused_while_the_newest_session_is_damaged() {
    let (yard, ids) = yard(3);
    std::fs::write(
        yard.path(&format!("sessions/{}/round-1/review.json", ids[2])),
        "",
    )
    .unwrap();
    // The reader finds the damage, and moves the session aside.
    assert_eq!(yard.store().latest().unwrap(), Some(ids[2]));
    let error = yard.store().session(&ids[2]).unwrap_err();
    assert!(
        error.hints.join(" ").contains("history prune --damaged"),
        "{error:?}"
    );
    for _ in 0..2 {
        let error = yard.store().latest().unwrap_err();
        assert!(
            error.message.contains(&ids[2].to_string()) && error.message.contains("is damaged"),
            "{error:?}"
        );
        assert!(
            error
                .causes
                .join(" ")
                .contains("round-1/review.json: it is empty"),
            "{error:?}"
        );
        let hints = error.hints.join(" ");
        assert!(
            hints.contains("`claude-reviewer history prune --damaged`")
                && hints.contains(&ids[1].to_string())
        );
    }
    let error = append(&yard.store(), &ids[2], day(4)).unwrap_err();
    assert!(
        error
            .message
            .contains(&format!("review {} is damaged", ids[2])),
        "{error:?}"
    );
    // A newer one is the latest; once removed, its name is not reused.
    let fourth = create(&yard.store(), day(3), 0).unwrap().id;
    assert!(fourth > ids[2] && yard.store().latest().unwrap() == Some(fourth));

    let (yard, ids) = self::yard(3);
    std::fs::write(
        yard.path(&format!("sessions/{}/round-1/review.json", ids[2])),
        "",
    )
    .unwrap();
    yard.store().list(5).unwrap();
    yard.store().discard(day(4)).unwrap();
    assert_eq!(yard.store().latest().unwrap(), Some(ids[1]));
    assert_eq!(
        wrong(&yard.store()),
        [""; 0],
        "what was removed is recorded, and no hole"
    );
    assert!(create(&yard.store(), day(3), 0).unwrap().id > ids[2]);
    assert_eq!(wrong(&yard.store()), [""; 0]);
}

#[test]
fn what_can_be_read_again_is_said_to_be() {
    let (yard, ids) = yard(2);
    let path = format!("{}/request.json", ids[1]);
    let text = std::fs::read(yard.path("sessions").join(&path)).unwrap();
    std::fs::write(yard.path("sessions").join(&path), "").unwrap();
    yard.store().list(5).unwrap();
    std::fs::write(yard.path(".corrupt").join(&path), text).unwrap();
    let error = yard.store().latest().unwrap_err();
    let command = format!("mv .reviews/.corrupt/{0} .reviews/sessions/{0}", ids[1]);
    assert!(error.causes.join(" ").contains(&command), "{error:?}");
    std::fs::rename(
        yard.path(&format!(".corrupt/{}", ids[1])),
        yard.path(&format!("sessions/{}", ids[1])),
    )
    .unwrap();
    assert_eq!(yard.store().latest().unwrap(), Some(ids[1]));
    assert_eq!(wrong(&yard.store()), [""; 0]);
}

#[test]
fn sto_06_what_a_newer_program_wrote_is_newer_and_not_edited() {
    let future = |text: &str| text.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1);
    // A newer program closed it.
    let (yard, ids) = yard(2);
    yard.store()
        .complete(&ids[0], closing(Status::Merged), false)
        .unwrap();
    let path = yard.path(&format!("sessions/{}/complete.json", ids[0]));
    std::fs::write(&path, future(&std::fs::read_to_string(&path).unwrap())).unwrap();
    for id in [None, Some(&ids[0])] {
        let checked = yard.store().verify(id, None).unwrap().remove(0);
        assert_eq!(checked.edits, []);
        let newer = checked.newer.unwrap();
        assert!(
            newer.contains("complete.json") && newer.contains("schema_version is 2"),
            "{newer}"
        );
    }
    for error in [
        yard.store().session(&ids[0]).unwrap_err(),
        append(&yard.store(), &ids[0], day(3)).unwrap_err(),
        yard.store()
            .complete(&ids[0], closing(Status::Approved), false)
            .unwrap_err(),
    ] {
        let told = format!("{} {}", error.message, error.causes.join(" "));
        assert!(
            told.contains(&ids[0].to_string()) && told.contains("newer claude-reviewer"),
            "{error:?}"
        );
    }
    assert!(path.exists());

    // A newer program answered a round: the stored data is what it sealed.
    use claude_reviewer::wire::stored::Response;
    let (yard, ids) = self::yard(1);
    let name = ids[0].to_string();
    let answer = Response {
        schema_version: 2,
        ..super::kit::response(&name, 1)
    };
    let write = |n: u32| super::kit::review(&name, n, 0);
    yard.store()
        .append(
            &ids[0],
            day(2),
            1,
            &super::kit::change("+2\n"),
            Some(answer),
            &write,
        )
        .unwrap();
    let checked = yard.store().verify(Some(&ids[0]), None).unwrap().remove(0);
    assert_eq!(checked.edits, []);
    assert!(checked.newer.unwrap().contains("round-1/response.json"));
    // A file that replaced it is invalid.
    let path = yard.path(&format!("sessions/{name}/round-1/response.json"));
    std::fs::write(
        &path,
        std::fs::read_to_string(&path)
            .unwrap()
            .replace("mended", "as it was"),
    )
    .unwrap();
    let edits = yard
        .store()
        .verify(Some(&ids[0]), None)
        .unwrap()
        .remove(0)
        .edits;
    assert!(
        edits.iter().any(|e| e.file == "round-1/response.json"),
        "{edits:?}"
    );
}
