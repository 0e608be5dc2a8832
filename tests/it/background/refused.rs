//! Tests of commits after which no review starts: in CI, without trust, or for its price.

use super::*;

#[test]
fn no_review_starts_in_ci_or_when_it_is_skipped() {
    let desk = Desk::new();
    for (name, value) in [
        ("CI", "true"),
        ("GITHUB_ACTIONS", "true"),
        ("CLAUDE_REVIEWER_SKIP", "1"),
    ] {
        desk.repo.stage("a.py", format!("NAME = \"{name}\"\n"));
        let out = desk
            .repo
            .git_command()
            .args(["commit", "-q", "-m", name])
            .env(name, value)
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", text(&out));
        let status = desk.status();
        assert!(
            status["running"].is_null() && status["pending"].is_null() && status["last"].is_null(),
            "{name}"
        );
    }
    assert_eq!(desk.asked(), 0);
}

#[test]
fn a_project_cannot_turn_reviews_on_until_a_person_trusts_it() {
    let desk = Desk::new();
    fs::remove_file(desk.repo.home().join(".config/claude-reviewer/config.toml")).unwrap();
    let policy = format!(
        "{}{PRICE}[hooks]\npost_commit = \"background\"\n",
        desk.server.policy("openai")
    );
    desk.repo.stage(".claude-reviewer.toml", policy);
    desk.repo.git(&["commit", "-q", "-m", "policy"]);
    let status = desk.status();
    assert_eq!(status["post_commit"], "off");
    assert!(
        status["running"].is_null() && status["last"].is_null(),
        "{status:#}"
    );
    desk.repo.reviewer(&["policy", "trust"]).run(0);
    let commit = desk.commit("a.py");
    assert_eq!(desk.settled()["last"]["commit"], commit.as_str());
}

#[test]
fn no_review_starts_when_the_day_has_cost_enough() {
    let expensive = |r: &Request| {
        let document = r.document(&[]).to_string();
        r.answer(&Says {
            text: document,
            tokens: (2_000_000, 0, 100),
            ..Says::default()
        })
    };
    let desk = Desk::answering(expensive);
    desk.configure("max_cost_per_day = 1.5\n", PRICE);
    desk.commit("a.py");
    let status = desk.settled();
    assert!(
        status["cost"]["spent_usd"].as_f64().unwrap() > 1.5,
        "{status:#}"
    );
    let asked = desk.asked();
    let commit = desk.commit("b.py");
    let status = desk.settled();
    assert_eq!(status["pending"]["order"]["commit"], commit.as_str());
    let held = status["pending"]["held"].as_str().unwrap();
    assert!(
        held.starts_with("max_cost_per_day = 1.5 is used up for "),
        "{held}"
    );
    assert_eq!(desk.asked(), asked);
    // The user raises the limit.
    desk.configure("max_cost_per_day = 9\n", PRICE);
    desk.repo.reviewer(&["status", "--start"]).run(0);
    assert_eq!(desk.settled()["last"]["commit"], commit.as_str());
}

#[test]
fn no_review_starts_when_its_price_is_unknown() {
    let desk = Desk::new();
    desk.configure("", "");
    desk.commit("a.py");
    let status = desk.settled();
    let held = status["pending"]["held"].as_str().unwrap();
    assert!(
        held.contains("no price of stub is known; set price in [backend.openai]"),
        "{held}"
    );
    assert_eq!(desk.asked(), 0);
    let doctor = desk
        .repo
        .reviewer(&["doctor", "--offline"])
        .run_any()
        .stdout;
    assert!(
        doctor.contains("background") && doctor.contains("no price of stub is known"),
        "{doctor}"
    );
}

#[test]
fn a_ledger_that_cannot_be_read_stops_reviews() {
    let desk = Desk::new();
    desk.status();
    let ledger = desk
        .repo
        .home()
        .join(".local/state/claude-reviewer/background/spending.json");
    fs::write(&ledger, "{").unwrap();
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o600)).unwrap();
    desk.commit("a.py");
    let run = eventually("the commit is held", || {
        fs::read_to_string(station(&desk.repo).join("queue.json"))
            .ok()
            .filter(|q| q.contains("spending.json"))
    });
    assert!(run.contains("cannot read"), "{run}");
    assert_eq!(desk.asked(), 0);
    let run = desk.repo.reviewer(&["status"]).run(3);
    assert!(
        run.stderr.contains("hint: start a new one: rm "),
        "{}",
        run.stderr
    );
    fs::remove_file(ledger).unwrap();
}
