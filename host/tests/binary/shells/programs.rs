//! Tests real programs with at least three inputs each: no answer comes before the program is done,
//! and none waits for silence if the system shows who waits.

use serde_json::json;

use super::{ShellCalls, house_with_shells, is_installed, output_text, return_reason};

/// A step at a program, and the text that its answer must contain.
enum ProgramStep {
    /// Types text.
    Type(&'static str, &'static str),
    /// Presses a key.
    Key(&'static str, &'static str),
}

use ProgramStep::{Key, Type};

/// Starts a program and runs its steps. Each answer must contain the text, which appears only when
/// the program is done with the step, and its reason must be that the program waits.
#[track_caller]
fn check_program(command: &str, greeting: &str, steps: &[ProgramStep]) {
    let program = command.split(' ').next().unwrap();
    let Some(house) = house_with_shells().filter(|_| is_installed(program)) else { return };
    house.write("workspace/many", &(1..=500).map(|n| format!("{n}\n")).collect::<String>());
    let mut calls = ShellCalls::in_house(&house);
    let spawn = json!({ "command": command, "timeout": 30 });
    let spawned = calls.call("shell_spawn", &spawn);
    assert!(output_text(&spawned).contains(greeting), "{command}: {spawned}");
    assert_eq!(return_reason(&spawned), "waiting", "{command}: {spawned}");
    for step in steps {
        let (answer, done) = match step {
            Type(text, done) => {
                let input = json!({ "session_id": "session_0", "input": text, "timeout": 30 });
                (calls.call("shell_input", &input), done)
            }
            Key(key, done) => {
                let key = json!({ "session_id": "session_0", "key": key, "timeout": 30 });
                (calls.call("shell_control", &key), done)
            }
        };
        assert!(output_text(&answer).contains(done), "{command}: {done}: {answer}");
        assert!(
            ["waiting", "exit"].contains(&return_reason(&answer)),
            "{command}: {done}: {answer}"
        );
    }
    calls.end(&house);
}

#[test]
fn wait_detection_works_in_shells() {
    let steps = [
        Type("echo $((6 * 7))\n", "42\n"),
        Type("sleep 0.8; echo sle''pt\n", "slept\n"),
        Type("for i in 1 2 3; do echo n$i; sleep 0.3; done\n", "n3\n"),
        Type("exit 3\n", ""),
    ];
    for (command, prompt) in
        [("bash --norc --noprofile", "$ "), ("sh", ""), ("dash", "$ "), ("zsh -f", "% ")]
    {
        check_program(command, if prompt == "% " { "" } else { prompt }, &steps);
    }
    check_program(
        "fish --no-config",
        "",
        &[
            Type("echo (math 6 x 7)\n", "42\n"),
            Type("sleep 0.8; echo sle''pt\n", "slept\n"),
            Type("exit\n", ""),
        ],
    );
}

#[test]
fn wait_detection_works_in_python() {
    check_program(
        "python3 -q",
        ">>> ",
        &[
            Type("6 * 7\n", "42\n>>> "),
            Type("import time; time.sleep(0.8); print('sle' + 'pt')\n", "slept\n>>> "),
            Type("for i in range(3):\n    print('n', i); time.sleep(0.3)\n\n", "n 2\n>>> "),
            Type("input('na' + 'me? ')\n", "name? "),
            Type("moon\n", "'moon'\n>>> "),
            Type("sum(i for i in range(3_000_000)) and 'com' + 'puted'\n", "'computed'\n>>> "),
            Key("c-d", ""),
        ],
    );
}

#[test]
fn node() {
    check_program(
        "node",
        "> ",
        &[
            Type("6 * 7\n", "42\n> "),
            Type("let s = Date.now(); while (Date.now() - s < 800); 'bu' + 'sy'\n", "'busy'\n> "),
            Type("[1, 2].map(x => x * 2)\n", "[ 2, 4 ]\n> "),
            Key("c-d", ""),
        ],
    );
}

#[test]
fn wait_detection_works_in_sqlite() {
    check_program(
        "sqlite3 -interactive :memory:",
        "sqlite> ",
        &[
            Type("select 6 * 7;\n", "42\nsqlite> "),
            Type(
                "select count(*) from (with recursive c(x) as (select 1 union all select x+1 from c where x<900000) select x from c);\n",
                "900000\nsqlite> ",
            ),
            Type("select 1,\n", "...> "),
            Type("2;\n", "1|2\nsqlite> "),
            Type(".quit\n", ""),
        ],
    );
}

#[test]
fn gdb() {
    check_program(
        "gdb -q -nx /bin/true",
        "(gdb) ",
        &[
            Type("print 6 * 7\n", "$1 = 42\n(gdb) "),
            Type("shell sleep 0.8; echo sle''pt\n", "slept\n(gdb) "),
            Type("starti\n", "(gdb) "),
            Type("quit\n", "y or n"),
            Type("y\n", ""),
        ],
    );
}

#[test]
fn less() {
    check_program(
        "less many",
        "1\n2\n3\n",
        &[Type(" ", "24\n"), Type("G", "500\n"), Type("?^77$\n", "77\n"), Type("q", "")],
    );
}

#[test]
fn vim() {
    check_program(
        "vim -u NONE many",
        "1\n2\n3\n",
        &[
            Type("G", "500"),
            Type("ofive hundred and one", "five hundred and one"),
            Key("escape", "five hundred and one"),
            Type(":%s/^/x/\n", "xfive hundred"),
            Type(":q!\n", ""),
        ],
    );
}

#[test]
fn top() {
    check_program(
        "top",
        "PID",
        &[Type("c", "PID"), Type("h", "Help for"), Key("escape", "PID"), Type("q", "")],
    );
}

/// Its loop always waits for lines, while a thread executes a line's command.
const WORKS_BESIDE_ITS_LOOP: &str = "python3 -c \"
import select, sys, threading, time
def work(line):
    end = time.monotonic() + 0.5
    while time.monotonic() < end: pass
    print(line, 'is done', flush=True)
print('ready', flush=True)
while True:
    select.select([sys.stdin], [], [])
    threading.Thread(target=work, args=[sys.stdin.readline().strip()]).start()
\"";

/// The same for a program that reads keys. While it works, the cursor is after the previous prompt.
const WORKS_BEHIND_ITS_PROMPT: &str = "python3 -c \"
import os, select, threading, time, tty
def work(key):
    end = time.monotonic() + 0.5
    while time.monotonic() < end: pass
    os.write(1, key + b' is done\\n> ')
tty.setcbreak(0)
os.write(1, b'> ')
while True:
    select.select([0], [], [])
    threading.Thread(target=work, args=[os.read(0, 9)]).start()
\"";

#[test]
fn program_that_works_in_a_second_thread_is_not_reported_as_waiting() {
    let steps = [
        Type("one\n", "one is done\n"),
        Type("two\n", "two is done\n"),
        Type("three\n", "three is done\n"),
    ];
    check_program(WORKS_BESIDE_ITS_LOOP, "ready\n", &steps);
    check_program(
        WORKS_BEHIND_ITS_PROMPT,
        "> ",
        &[Type("a", "a is done\n> "), Type("b", "b is done\n> ")],
    );
}

#[test]
fn wait_detection_works_in_npm_init() {
    check_program(
        "npm init",
        "package name: ",
        &[
            Type("moon\n", "version: (1.0.0) "),
            Type("\n", "description: "),
            Type("a moon\n", "entry point: "),
            Type("\n", "test command: "),
        ],
    );
}

#[test]
fn slow_spinning_and_silent_programs_are_not_reported_as_waiting() {
    let python = |line: &str| format!("python3 -c \"{line}; input('done? ')\"");
    let slow = "import time; [(print(i, flush=True), time.sleep(0.7)) for i in range(3)]";
    check_program(&python(slow), "2\ndone? ", &[Type("y\n", "")]);
    let spin = "import time; [(print('|/-'[i % 3], end='\\r', flush=True), time.sleep(0.1)) for i in range(12)]";
    check_program(&python(spin), "done? ", &[Type("y\n", "")]);
    let silent =
        "import time; s = time.time()\nwhile time.time() - s < 1.5: pass\nprint('computed')";
    let Some(house) = house_with_shells().filter(|_| is_installed("python3")) else { return };
    house.write("workspace/silent.py", &format!("{silent}\ninput('done? ')\n"));
    let mut calls = ShellCalls::in_house(&house);
    let (_, spawned) = calls.spawn("python3 silent.py");
    assert_eq!((output_text(&spawned), return_reason(&spawned)), ("computed\ndone? ", "waiting"));
    calls.end(&house);
}
