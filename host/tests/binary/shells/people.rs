//! People see the shells of the plugin that ships, type there, and give what the model must not see.

use serde_json::json;

use super::{BASH, Calls, PLACES, furnish, output};
use crate::secrets::{SECRET, is_nowhere};
use crate::support::Command;
use crate::terminal::on_terminal;

fn as_it_is(command: Command) -> Command {
    command
}

#[test]
fn a_person_joins_and_types_and_the_model_is_told_how_much() {
    for place in PLACES {
        let Some(house) = furnish(place) else { return };
        let mut calls = Calls::of(&house);
        let (session, _) = calls.spawn(BASH);
        let listed = house.run(&["shell", "list", "--json"]).silent().json();
        assert_eq!((&listed[0]["name"], &listed[0]["is_alive"]), (&json!(session), &json!(true)));
        let words = format!("shell attach {session} --type");
        let Some(mut types) = on_terminal(&house, &words, as_it_is) else { return };
        types.wait_for_text("you type");
        let line = "echo from-$((40+2))\r";
        types.write(line.as_bytes());
        types.wait_for_text("from-42");
        types.write(b"\x1d");
        types.wait_with_open_input().code(0);
        let read = calls.call("shell_read", &json!({ "session_id": session }));
        assert!(output(&read).contains("from-42"), "{read}");
        assert_eq!(read["typed_by_person"], true, "{read}");
        let seen = house.run(&["shell", "attach", &session]).silent();
        assert!(seen.stdout.contains("from-42"), "{seen}");
        calls.close(&session);
        assert_eq!(house.run(&["shell", "list", "--json"]).silent().json(), json!([]));
        calls.end(&house);
    }
}

#[test]
fn a_person_types_the_password_that_a_program_asks_the_model_for() {
    let login = "sh -c 'stty -echo; printf \"Password: \"; read -r word; stty echo; echo; echo \"${#word} letters\"'";
    for place in PLACES {
        let Some(house) = furnish(place) else { return };
        let input = json!({ "session_id": "session_0", "ask_user": true });
        house.script(&json!({ "answers": [
            { "steps": [{ "call": { "name": "shell_spawn", "arguments": { "command": login } } }] },
            {
                "expect": { "tool_result": "Password: " },
                "steps": [{ "call": { "name": "shell_input", "arguments": input } }],
            },
            { "expect": { "tool_result": "21 letters" }, "steps": [{ "text": "done" }] },
        ] }));
        house.configure_more(place);
        let trace = house.workspace().join("trace");
        let traced = |command: Command| command.variable("JAATO_TRACE_LOG", &trace);
        let words = "run --yes --output json go";
        let Some(mut running) = on_terminal(&house, words, traced) else { return };
        running.wait_for_text("Ctrl-C declines");
        running.write(format!("{SECRET}\r").as_bytes());
        let output = running.wait_with_open_input().code(0);
        assert!(output.stdout.contains("21 letters"), "{output}");
        assert!(output.stdout.contains("\"terminal_answered\""), "{output}");
        assert!(!output.stdout.contains(SECRET), "{output}");
        assert!(trace.exists());
        is_nowhere(&house);
        house.nothing_lives();
    }
}
