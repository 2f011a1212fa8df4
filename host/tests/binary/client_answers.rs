//! Tests `jaato run --output json --answers`: a program answers permission prompts and forms.

use serde_json::{Value, json};

use crate::forms::{house_with_talks, house_with_talks_in_worker};
use crate::house;
use crate::secrets::{SECRET, assert_secret_nowhere};
use crate::support::answers::{call_answer, text_answer};
use crate::support::command::Running;
use crate::support::{House, fixture};

const RUN: [&str; 5] = ["run", "--output", "json", "--answers", "go"];

fn expect_result(result: &str, then: Value) -> Value {
    let mut answer = then;
    answer["expect"] = json!({ "tool_result": result });
    answer
}

fn name_form() -> Value {
    let colours = json!([{ "value": "red" }, { "value": "blue" }]);
    json!({ "title": "You", "fields": [
        { "name": "colour", "kind": "choice", "options": colours },
        { "name": "word", "kind": "secret" },
    ] })
}

/// Waits for an event and returns it.
#[track_caller]
fn wait_for_event(running: &Running, name: &str) -> Value {
    let line = running.wait_for(&format!("\"event\":\"{name}\""));
    serde_json::from_str(&line).unwrap()
}

fn write_answer(running: &mut Running, answer: &Value) {
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
}

fn answer_permission(running: &mut Running, decision: &str) {
    let call_id = wait_for_event(running, "permission_asked")["call_id"].clone();
    write_answer(running, &json!({ "call_id": call_id, "decision": decision }));
}

/// Returns an installation whose model asks the user.
fn house_that_asks(house: Option<House>) -> Option<House> {
    let house = house?;
    house.set_script(&json!({ "answers": [
        call_answer("ask_person", json!({ "form": name_form(), "lengths": true })),
        expect_result("\"colour\":4,\"word\":21", text_answer("done")),
    ] }));
    Some(house)
}

#[test]
fn client_answers_permission_prompts_and_forms() {
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house_that_asks(house) else { return };
        let mut running = house.command(&RUN).start();
        answer_permission(&mut running, "allow_once");
        let asked = wait_for_event(&running, "form_asked");
        assert_eq!((&asked["form_id"], &asked["form"]["title"]), (&json!("form_1"), &json!("You")));
        let values = json!({ "colour": "blue", "word": SECRET });
        let answer = json!({ "form_id": "form_1", "outcome": "answered", "values": values });
        write_answer(&mut running, &answer);
        let over = wait_for_event(&running, "form_answered");
        assert_eq!(over["outcome"], "answered");
        let output = running.finish().code(0);
        assert_eq!(output.stderr, "", "{output}");
        assert!(!output.stdout.contains(SECRET), "{output}");
        assert_secret_nowhere(&house);
        house.assert_no_processes();
    }
}

#[test]
fn client_decisions_apply_once_or_for_the_session_with_a_comment() {
    let house = house!();
    house.ship(&fixture("probe"));
    house.set_script(&json!({ "answers": [
        call_answer("count", json!({})),
        expect_result("use your fingers", call_answer("count", json!({}))),
        expect_result("\"count\":1", call_answer("count", json!({}))),
        expect_result("\"count\":2", text_answer("done")),
    ] }));
    let mut running = house.command(&RUN).start();
    let call_id = wait_for_event(&running, "permission_asked")["call_id"].clone();
    let comment = "use your fingers";
    let answer = json!({ "call_id": call_id, "decision": "deny", "comment": comment });
    write_answer(&mut running, &answer);
    answer_permission(&mut running, "allow_in_session");
    let output = running.finish().code(0);
    assert_eq!(output.stdout.matches("\"permission_asked\"").count(), 2, "{output}");
}

#[test]
fn invalid_answer_lines_are_reported_and_ignored() {
    let Some(house) = house_that_asks(house_with_talks()) else { return };
    let mut running = house.command(&RUN).start();
    let call_id =
        wait_for_event(&running, "permission_asked")["call_id"].as_str().unwrap().to_owned();
    let session = "elsewhere";
    let wrong = [
        "hunter2".to_owned(),
        "{\"answer\": {\"word\": \"hunter2\"}}".to_owned(),
        json!({ "answer": { "call_id": "call_9", "decision": "allow_once" } }).to_string(),
        json!({ "answer": { "call_id": call_id, "session": session, "decision": "deny" } })
            .to_string(),
        json!({ "answer": { "form_id": call_id, "outcome": "declined" } }).to_string(),
        json!({ "answer": { "call_id": call_id, "decision": "hunter2" } }).to_string(),
        "\u{1b}[2J".to_owned(),
        String::new(),
    ];
    for line in &wrong {
        running.write(format!("{line}\n").as_bytes());
    }
    running.write(b"\xff\xfe\n");
    write_answer(&mut running, &json!({ "call_id": call_id, "decision": "allow_once" }));
    // A client that reads only standard output notices too.
    let refused = wait_for_event(&running, "answer_refused");
    assert_eq!(
        (&refused["line"], &refused["error"]["kind"]),
        (&json!(1), &json!("invalid_arguments"))
    );
    wait_for_event(&running, "form_asked");
    write_answer(&mut running, &json!({ "call_id": call_id, "decision": "allow_once" }));
    // An invalid answer causes another question.
    let unfit = json!({ "form_id": "form_1", "outcome": "answered", "values": { "colour": "x" } });
    write_answer(&mut running, &unfit);
    running.wait_for_error("does not fit the form (2 more may come): `colour` is not answered");
    running.wait_for("\"event\":\"answer_refused\",\"id\":\"form_1\"");
    let values = json!({ "colour": "blue", "word": SECRET });
    let answer = json!({ "form_id": "form_1", "outcome": "answered", "values": values });
    write_answer(&mut running, &answer);
    wait_for_event(&running, "turn_finished");
    write_answer(&mut running, &answer);
    let output = running.finish().code(0);
    let told: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("note:")).collect();
    for (line, what) in [
        (1, "it is not JSON (column 1)"),
        (2, "either a text `call_id` or a text `form_id`"),
        (3, "no question `call_9` is waiting"),
        (4, &*format!("no question `{call_id}` is waiting")),
        (5, "is a tool call: answer it with `call_id`"),
        (6, "`decision` is not a known decision"),
        (7, "it is not JSON"),
        (9, "it is not JSON"),
        (11, "is closed: it was answered or withdrawn"),
    ] {
        let begin = format!("note: line {line} of standard input is not an answer: ");
        let found = told.iter().any(|it| it.starts_with(&begin) && it.contains(what));
        assert!(found, "{line}: {what}: {output}");
    }
    for secret in ["hunter2", SECRET, "\u{1b}"] {
        assert!(!output.stderr.contains(secret), "{output}");
        assert!(!output.stdout.contains(secret), "{output}");
    }
}

#[test]
fn closed_standard_input_means_no_user_can_be_asked() {
    let Some(house) = house_with_talks() else { return };
    let asks = || call_answer("ask_person", json!({ "form": name_form() }));
    let nobody = "no user can be asked (standard input has ended)";
    house.set_script(&json!({ "answers": [asks(), expect_result(nobody, text_answer("done"))] }));
    let output = house.command(&RUN).run().code(6);
    assert!(output.stderr.contains(nobody), "{output}");
    // Not even if a question is open.
    house.set_script(&json!({ "answers": [
        asks(),
        expect_result(
            "\"outcome\":\"nobody\",\"reason\":\"standard input has ended\"",
            text_answer("done"),
        ),
    ] }));
    let mut running = house.command(&RUN).start();
    answer_permission(&mut running, "allow_once");
    wait_for_event(&running, "form_asked");
    running.finish().code(0);
    house.assert_no_processes();
}

#[test]
fn form_with_three_invalid_answers_stays_unanswered() {
    let Some(house) = house_that_asks(house_with_talks()) else { return };
    house.set_script(&json!({ "answers": [
        call_answer("ask_person", json!({ "form": name_form() })),
        expect_result("3 answers did not fit the form", text_answer("done")),
    ] }));
    let mut running = house.command(&RUN).start();
    answer_permission(&mut running, "allow_once");
    wait_for_event(&running, "form_asked");
    for left in (0..3).rev() {
        write_answer(&mut running, &json!({ "form_id": "form_1", "outcome": "answered" }));
        running.wait_for_error(&format!("({left} more may come)"));
    }
    assert_eq!(wait_for_event(&running, "form_answered")["outcome"], "nobody");
    running.finish().code(0);
}

#[test]
fn flood_of_invalid_lines_is_read_and_reported_up_to_a_limit() {
    let Some(house) = house_that_asks(house_with_talks()) else { return };
    let mut running = house.command(&RUN).start();
    let call_id = wait_for_event(&running, "permission_asked")["call_id"].clone();
    running.write("x\n".repeat(20_000).as_bytes());
    let long = format!("{{\"answer\": \"{}\"}}\n", "y".repeat(9 * 1024 * 1024));
    running.write(long.as_bytes());
    write_answer(&mut running, &json!({ "call_id": call_id, "decision": "allow_once" }));
    wait_for_event(&running, "form_asked");
    write_answer(&mut running, &json!({ "form_id": "form_1", "outcome": "declined" }));
    let output = running.finish().code(5);
    assert_eq!(output.stderr.matches("is not an answer:").count(), 100, "{}", output.stderr.len());
    assert!(
        output.stderr.contains("jaato does not report further lines that are not answers"),
        "{output}"
    );
}

#[test]
fn signal_ends_a_run_whose_client_does_not_answer() {
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house_that_asks(house) else { return };
        let mut running = house.command(&RUN).start();
        answer_permission(&mut running, "allow_once");
        wait_for_event(&running, "form_asked");
        running.send_signal("TERM");
        assert_eq!(wait_for_event(&running, "form_answered")["outcome"], "cancelled");
        running.wait_with_open_input().code(130);
        house.assert_no_processes();
    }
}

#[test]
fn answers_option_needs_json_output_and_a_task() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let output = house.run(&["run", "--answers", "go"]).code(2);
    assert!(output.stderr.contains("hint: add `--output json`"), "{output}");
    let output = house.command(&["run", "--output", "json", "--answers"]).input("go\n").run();
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("there is no task"), "{output}");
}
