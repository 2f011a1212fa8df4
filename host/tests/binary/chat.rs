//! Tests `jaato chat`: one conversation, message by message, from a pipe and on a terminal.

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::answers::text_answer;
use crate::support::{Command, House, fixture};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

#[test]
fn lines_of_a_pipe_are_messages_of_one_conversation() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "expect": { "prompt": "first", "messages": 1 }, "steps": [{ "text": "one" }] },
        { "expect": { "prompt": "second", "messages": 3 }, "steps": [{ "text": "two" }] },
        { "expect": { "prompt": "/third", "messages": 5 }, "steps": [{ "text": "three" }] },
    ] }));
    let input = "second\n\n   \n//third\n";
    let output = house.command(&["chat", "first"]).input(input).run().code(0);
    assert_eq!(output.stdout, "one\ntwo\nthree\n");
    assert!(!output.stderr.contains("> "), "piped input gets no prompt: {output}");
}

#[test]
fn piped_chat_exits_with_the_worst_exit_code() {
    let fails =
        || json!({ "steps": [{ "fail": { "kind": "provider", "message": "overloaded" } }] });
    for answers in [[fails(), text_answer("well")], [text_answer("well"), fails()]] {
        let house = house!();
        house.set_script(&json!({ "answers": answers }));
        let output = house.command(&["chat"]).input("a\nb\n").run().code(5);
        assert!(output.stderr.contains("error: overloaded"), "{output}");
        assert_eq!(output.stdout, "well\n");
    }
    let house = house!();
    house.set_script(&json!({ "answers": [text_answer("one"), text_answer("two")] }));
    house.command(&["chat"]).input("a\n/moon\nb\n").run().code(2);
    // A message that succeeds on the second attempt has not failed, but an earlier failed one has.
    let house = house!();
    house.set_script(&json!({ "answers": [fails(), fails(), text_answer("well")] }));
    house.command(&["chat"]).input("a\nb\n/again\n").run().code(5);
}

#[test]
fn a_failed_request_can_be_sent_again() {
    let house = house!();
    let fails = json!({ "steps": [{ "fail": { "kind": "provider", "message": "overloaded" } }] });
    house.set_script(&json!({ "answers": [
        fails,
        { "expect": { "prompt": "a", "messages": 1 }, "steps": [{ "text": "well" }] },
    ] }));
    let output = house.command(&["chat"]).input("a\n/again\n").run().code(0);
    assert_eq!(output.stdout, "well\n");
    let output = house.command(&["chat"]).input("/again\n").run().code(2);
    assert!(output.stderr.contains("there is no request to send again"), "{output}");
}

#[test]
fn host_commands_in_a_chat_are_not_sent_to_the_model() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let output =
        house.command(&["chat"]).input("/help\n/attach\n/moon x\n/quit\nnever\n").run().code(2);
    assert!(output.stderr.contains("/again"), "{output}");
    assert!(
        output.stderr.contains("/gc [plan|undo]         Makes room in the conversation"),
        "{output}"
    );
    assert!(output.stderr.contains("error: /attach needs a file"), "{output}");
    assert!(output.stderr.contains("error: there is no command `moon`"), "{output}");
    assert_eq!(output.stdout, "");
}

#[test]
fn gc_command_works_in_a_chat() {
    let house = house!();
    let built = crate::support::fixtures::test_house().unwrap().join("plugins");
    house.ship(&built.join(crate::support::library_name("gc_truncate")));
    house.set_script(&json!({ "answers": [
        text_answer("one"),
        text_answer("two"),
        { "expect": { "prompt": "c", "messages": 3 }, "steps": [{ "text": "three" }] },
    ] }));
    house.configure_more("[gc]\npreserve_recent_turns = 1\n");
    let output = house.command(&["chat"]).input("a\nb\n/gc\nc\n").run().code(0);
    assert!(output.stdout.contains("\"turns_removed\": 1"), "{output}");
    assert!(output.stdout.ends_with("three\n"), "{output}");
}

#[test]
fn commands_of_plugins_are_answered_from_the_conversations_own_state() {
    let house = house!(ships "commands");
    house.set_script(&json!({ "answers": [
        { "expect": { "prompt": "a", "messages": 1 }, "steps": [{ "text": "one" }] },
        { "expect": { "prompt": "b" }, "steps": [{ "text": "two" }] },
    ] }));
    let input =
        "/count\na\n/note 3 buy  milk\n/note {\"priority\": 4, \"text\": \"t\"}\n/count\nb\n";
    let output = house.command(&["chat"]).input(input).run().code(0);
    expect![[r#"
        exit 0
        --- stdout
        {
          "notes": 0
        }
        one
        {
          "number": 1,
          "note": {
            "priority": 3,
            "text": "buy milk"
          }
        }
        {
          "number": 2,
          "note": {
            "priority": 4,
            "text": "t"
          }
        }
        {
          "notes": 2
        }
        two
        --- stderr
          fixture-commands │ writing
          fixture-commands │ writing
    "#]]
    .assert_eq(&output.to_string());
    house.assert_no_processes();
}

#[test]
fn failing_command_does_not_end_the_chat() {
    let house = house!(ships "commands");
    house.set_script(&json!({ "answers": [text_answer("one")] }));
    let input = "/note 0 x\n/panic\n/count x\n/note 1 x\na\n";
    // Piped lines end with the worst exit code, which is that of the panic.
    let output = house.command(&["chat"]).input(input).run().code(4);
    expect![[r#"
        exit 4
        --- stdout
        {
          "number": 1,
          "note": {
            "priority": 1,
            "text": "x"
          }
        }
        one
        --- stderr
        error: the arguments of `note` do not match its schema: at `/priority`: 0 is less than the minimum of 1
        hint: write it as `note <priority> <text…>`, or with one JSON object
        error: plugin `fixture-commands`: panicked at commands/src/lib.rs:LINE: boom in a command
        error: cannot parse the command `count`: unexpected word: `x`
        hint: write it as `count`, or with one JSON object
          fixture-commands │ writing
    "#]].assert_eq(&output.to_string());
    let output = house.command(&["chat"]).input("a\n/panic\n").run().code(4);
    assert_eq!(output.stdout, "one\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn chat_with_a_closed_output_ends_without_an_error_message() {
    let house = house!(ships "commands");
    let mut endless: Vec<_> = (0..2000).map(|_| json!({ "text": "x".repeat(100) })).collect();
    endless.push(json!("hang"));
    let endless = json!({ "steps": endless });
    // In the middle of an answer, at the next one, and at the answer of a command.
    for (answers, next) in [
        (json!([endless]), "\n"),
        (json!([text_answer("0123456789"), endless]), "continue\n"),
        (json!([text_answer("0123456789")]), "/count\n"),
    ] {
        house.set_script(&json!({ "answers": answers }));
        // An answer that is never requested again is written as it comes.
        house.configure_more("[session]\nattempts_max = 1\n");
        let command = house.command(&["chat", "hello"]).input(next);
        // The first answer including its newline.
        let output = command.run_into_closed_output(11).code(1);
        assert_eq!(output.stderr, "", "{output}");
        house.assert_no_processes();
    }
}

#[test]
fn piped_line_with_invalid_utf8_ends_the_chat_with_its_position() {
    let house = house!();
    house.set_script(&json!({ "answers": [text_answer("one")] }));
    let output = house.command(&["chat"]).input(b"a\nb\xff\n".as_slice()).run().code(2);
    assert_eq!(output.stdout, "one\n");
    assert!(output.stderr.contains("not UTF-8: byte 1 is wrong"), "{output}");
}

#[test]
fn cancelled_answer_is_continued_by_the_next_message() {
    let house = house!(ships "probe");
    house.set_script(&json!({ "answers": [
        { "steps": [{ "text": "half said" }, "hang"] },
        {
            "expect": { "prompt": "continue", "messages": 3 },
            "steps": [{ "call": { "name": "count", "arguments": {} } }],
        },
        { "expect": { "tool_result": "\"count\":1", "messages": 5 }, "steps": [{ "text": "whole" }] },
    ] }));
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_on_terminal(&house, "chat", editing) else { return };
    running.wait_for_text("/help lists");
    running.wait_for_text("> ");
    // The editor handles the arrow key, so the line is `tell me`.
    running.write(b"tel me\x1b[D\x1b[D\x1b[Dl\r");
    running.wait_for_text("half said");
    running.write(b"\x03");
    running.wait_for_text("cancelled");
    running.wait_for_text("> ");
    running.write(b"continue\r");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("whole");
    running.wait_for_text("> ");
    running.write(b"\x04");
    running.wait_with_open_input().code(0);
    house.assert_no_processes();
}

#[test]
fn text_typed_after_ctrl_c_at_a_prompt_arrives_complete() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("probe"));
    let count = json!({ "call": { "name": "count", "arguments": {} } });
    house.set_script(&json!({ "answers": [
        { "steps": [count] },
        { "expect": { "prompt": "tell me all" }, "steps": [count] },
        { "expect": { "prompt": "and what else is there?" }, "steps": [{ "text": "that was all" }] },
    ] }));
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_on_terminal(&house, "chat begin", editing) else { return };
    for (half, next) in [("", "tell me all\r"), ("ye", "and what else is there?\r")] {
        running.wait_for_question();
        running.write(half.as_bytes());
        running.write(b"\x03");
        running.wait_for_text("cancelled");
        running.wait_for_text("> ");
        // Key by key, as a user types.
        for key in next.as_bytes() {
            running.write(&[*key]);
        }
    }
    running.wait_for_text("that was all");
    running.wait_for_text("> ");
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    assert!(!output.stdout.contains("error:"), "{output}");
    house.assert_no_processes();
}

#[test]
fn terminated_chat_restores_the_terminal_settings() {
    let Some(house) = House::new() else { return };
    house.set_script(&json!({ "answers": [text_answer("hello")] }));
    let binary = house.binary().display().to_string();
    let line = format!("stty -a > before; '{binary}' chat hi; echo ended $?; stty -a > after");
    let settings = |file: &str| std::fs::read_to_string(house.workspace().join(file)).unwrap();
    for signal in ["TERM", "HUP"] {
        let editing = |command: Command| command.variable("TERM", "xterm");
        let Some(mut running) = run_shell_on_terminal(&house, &line, editing) else { return };
        running.wait_for_text("hello");
        running.wait_for_text("> ");
        running.write(b"half a li");
        running.wait_for_text("half a li");
        let words = format!("{binary} chat hi");
        let processes = house.processes();
        let mut chats = processes.iter().filter_map(|it| it.trim_end().strip_suffix(&words));
        let pid = chats.next().unwrap().trim_end_matches(": ");
        let kill = ["-s", signal, pid];
        assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
        running.wait_for_text("ended 0");
        running.wait_with_open_input().code(0);
        assert!(settings("before").contains(" icanon "), "{}", settings("before"));
        assert_eq!(settings("before"), settings("after"), "{signal}");
        house.assert_no_processes();
    }
}

#[test]
fn ctrl_c_at_the_prompt_drops_the_line_and_the_chat_continues() {
    let Some(house) = House::new() else { return };
    house.set_script(&json!({ "answers": [text_answer("hello")] }));
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_on_terminal(&house, "chat", editing) else { return };
    running.wait_for_text("> ");
    running.write(b"not this\x03");
    // The prompt of an idle conversation, not the one that the editor has drawn over the first.
    running.wait_for_text("\u{1b}[?2004h> ");
    running.write(b"hi\r");
    running.wait_for_text("hello");
    running.write(b"/quit\r");
    running.wait_with_open_input().code(0);
    house.assert_no_processes();
}
