//! Tests `jaato shell`: the same user lists, watches and types in a model's terminal from another
//! terminal.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::command::{DEADLINE, LOOK_AGAIN, Running};
use crate::support::{Command, House, fixture, fixtures, library_name, skip};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

/// A user id that no user has.
const STRANGER: u32 = 4711;

/// Repeats each input line, and ends with `bye`.
const ECHOES: &str =
    "echo ready; while read -r line; do [ \"$line\" = bye ] && exit; echo \"got $line\"; done";

/// The input that ends the echoing program.
const BYE: &[u8] = b"bye\r";

/// Returns an installation with the tool `play_terminals`.
pub fn house_with_terminals() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("environment_local")));
    house.ship(&fixture("terminals"));
    Some(house)
}

/// Returns the arguments of a call that plays at one terminal.
pub fn play_arguments(line: &str, steps: Value) -> String {
    let play = json!({ "program": "sh", "args": ["-c", line], "steps": steps });
    json!({ "terminals": [play] }).to_string()
}

/// Plays in the background.
fn start_playing(house: &House, line: &str, steps: Value) -> Running {
    let played = play_arguments(line, steps);
    let running = house.command(&["call", "play_terminals", &played]).no_input().start();
    wait_until("a terminal is listed", || !list_terminals(house).is_empty());
    running
}

/// Plays a program that repeats its input, and follows it until it ends.
fn start_echoing(house: &House) -> Running {
    start_playing(house, ECHOES, json!([{ "shown": "ready" }, { "follow": "session_0" }]))
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < DEADLINE, "timed out: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn list_terminals(house: &House) -> Vec<Value> {
    let listed = house.run(&["shell", "list", "--json"]).expect_silent().json();
    listed.as_array().unwrap().clone()
}

fn socket_folder(house: &House) -> PathBuf {
    house.path().join("run/jaato")
}

fn list_sockets(house: &House) -> Vec<PathBuf> {
    let entries = fs::read_dir(socket_folder(house)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Connects to the only host.
fn connect_to_board(house: &House) -> UnixStream {
    let stream = UnixStream::connect(&list_sockets(house)[0]).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Reads a line, or everything before the end.
fn read_line(stream: &mut UnixStream) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while let Ok(1) = stream.read(&mut byte) {
        if byte == *b"\n" {
            break;
        }
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

/// Returns the answers of a `play_terminals` call for its terminal.
fn read_answers(running: Running) -> Value {
    running.finish().code(0).json()["terminals"][0]["answers"].clone()
}

/// Joins a terminal, types, and waits for the end. Returns `None` if the test has no terminal to
/// join from.
#[track_caller]
fn type_into_terminal(
    house: &House,
    name: &str,
    change: impl Fn(Command) -> Command,
    bytes: &[u8],
) -> Option<()> {
    let mut types = run_on_terminal(house, &format!("shell attach {name} --type"), change)?;
    types.wait_for_text("typing:");
    types.write(bytes);
    types.wait_with_open_input().code(0);
    Some(())
}

/// Ends the program by typing its end line.
fn end_program(house: &House) {
    type_into_terminal(house, "session_0", unchanged_command, BYE);
}

fn unchanged_command(command: Command) -> Command {
    command
}

#[test]
fn shell_list_is_empty_without_terminals() {
    let Some(house) = House::new() else { return };
    assert_eq!(house.run(&["shell", "list"]).expect_silent().stdout, "no terminals\n");
    assert_eq!(house.run(&["shell", "list", "--json"]).expect_silent().json(), json!([]));
    let output = house.run(&["shell", "attach", "x"]).code(2);
    assert!(output.stderr.contains("there is no terminal `x`"), "{output}");
    // A host without a terminal has no socket, and listing creates no folder.
    house.run(&["tool", "list"]).code(0);
    assert!(!socket_folder(&house).exists());
}

#[test]
fn terminal_is_listed_while_it_runs_and_its_socket_is_private() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    let found = list_terminals(&house);
    let session = found[0]["session"].as_str().unwrap();
    assert_eq!(found[0]["terminal"], format!("{session}/session_0"));
    for (key, value) in [
        ("name", json!("session_0")),
        ("plugin", json!("fixture-terminals")),
        ("command", json!("a program")),
        ("rows", json!(24)),
        ("columns", json!(80)),
        ("is_alive", json!(true)),
        ("watchers", json!(0)),
    ] {
        assert_eq!(found[0][key], value, "{key}");
    }
    let table = house.run(&["shell", "list"]).expect_silent().stdout;
    assert!(table.contains(&format!("{session}/session_0")) && table.contains("80x24"), "{table}");
    let socket = &list_sockets(&house)[..];
    assert_eq!(socket.len(), 1);
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode(&socket_folder(&house)), mode(&socket[0])), (0o700, 0o600));
    let printed = house.run(&["shell", "attach", "session_0"]).expect_silent();
    assert_eq!(printed.stdout, "ready\n\n");
    end_program(&house);
    running.finish().code(0);
    assert_eq!(list_sockets(&house), Vec::<PathBuf>::new());
    assert_eq!(list_terminals(&house), Vec::<Value>::new());
    house.assert_no_processes();
}

#[test]
fn viewer_sees_the_terminal_live_and_cannot_type() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    let full = list_terminals(&house)[0]["terminal"].as_str().unwrap().to_owned();
    let Some(mut looks) =
        run_on_terminal(&house, &format!("shell attach {full}"), unchanged_command)
    else {
        return;
    };
    looks.wait_for_text("viewing: q quits");
    wait_until("one watcher is listed", || list_terminals(&house)[0]["watchers"] == 1);
    looks.write(b"rm -r\r");
    let mut types =
        run_on_terminal(&house, "shell attach session_0 --type", unchanged_command).unwrap();
    types.wait_for_text("typing:");
    types.write(b"hello\r");
    types.wait_for_text("got hello");
    looks.wait_for_text("got hello");
    looks.write(b"q");
    let looked = looks.wait_with_open_input().code(0);
    // The plugin's extra sequences do not reach the user's terminal, which is unchanged.
    for driving in ["\u{1b}]0;owned", "\u{1b}[6n"] {
        assert!(!looked.stdout.contains(driving), "{driving:?}: {:?}", looked.stdout);
    }
    assert!(looked.stdout.contains("\u{1b}[?1049h"), "{:?}", looked.stdout);
    assert!(looked.stdout.trim_end().ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{:?}", looked.stdout);
    types.write(BYE);
    let typed = types.wait_with_open_input().code(0);
    assert!(typed.stdout.contains("session_0` has ended"), "{:?}", typed.stdout);
    let news = read_answers(running)[0].as_array().unwrap().clone();
    let typed = news.iter().filter(|news| news["event"] == "typed");
    let bytes: u64 = typed.map(|news| news["bytes"].as_u64().unwrap()).sum();
    assert_eq!(bytes, "hello\rbye\r".len() as u64, "{news:?}");
    let most = news.iter().filter_map(|news| news["watchers"].as_u64()).max();
    assert_eq!(most, Some(2), "{news:?}");
    house.assert_no_processes();
}

#[test]
fn input_typed_just_before_detaching_is_delivered() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    let Some(()) = type_into_terminal(&house, "session_0", unchanged_command, b"bye\r\x1d") else {
        return;
    };
    let news = read_answers(running)[0].to_string();
    assert!(news.contains("\"bytes\":4"), "{news}");
}

#[test]
fn terminal_of_a_worker_can_be_attached_and_ends_with_the_worker() {
    let Some(house) = house_with_terminals() else { return };
    house.configure_more("[plugins]\nisolated = [\"fixture-terminals\"]\n");
    let running = start_echoing(&house);
    let Some(mut types) =
        run_on_terminal(&house, "shell attach session_0 --type", unchanged_command)
    else {
        return;
    };
    types.wait_for_text("typing:");
    types.write(b"hello\r");
    types.wait_for_text("got hello");
    let worker = house
        .processes()
        .into_iter()
        .find(|it| it.contains("plugin-worker") && it.contains("fixture_terminals"))
        .unwrap();
    let pid = worker.split(':').next().unwrap();
    assert!(std::process::Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    let typed = types.wait_with_open_input().code(0);
    assert!(typed.stdout.contains("session_0` has ended"), "{:?}", typed.stdout);
    let output = running.finish().code(4);
    assert!(output.stderr.contains("fixture-terminals"), "{output}");
    house.assert_no_processes();
}

#[test]
fn terminal_state_is_restored_however_the_user_detaches() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    let binary = house.binary();
    // The state of the shell's terminal afterwards: it echoes and reads lines.
    let shell = |words: &str| {
        let jaato = binary.display();
        format!(
            "stty -echo; stty echo; {jaato} {words}; echo code $?; stty -a | grep -o ' .*icanon'; stty -a | grep -ow '.*echo'; echo back"
        )
    };
    let look = "shell attach session_0";
    for keys in [b"q".as_slice(), b"\x03", b"\x1d"] {
        let Some(mut looks) = run_shell_on_terminal(&house, &shell(look), unchanged_command) else {
            return;
        };
        looks.wait_for_text("viewing:");
        looks.write(keys);
        looks.wait_for_text("back");
        let output = looks.wait_with_open_input();
        let after = output.stdout.rsplit("code ").next().unwrap();
        assert!(after.starts_with('0') && !after.contains("-icanon"), "{output}");
    }
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let Some(looks) = run_shell_on_terminal(&house, &shell(look), unchanged_command) else {
            return;
        };
        looks.wait_for_text("viewing:");
        end_viewer(&house, signal);
        looks.wait_for_text("back");
        let output = looks.wait_with_open_input();
        let after = output.stdout.rsplit("code ").next().unwrap();
        assert!(after.starts_with("130") && !after.contains("-icanon"), "{signal}: {output}");
        assert!(output.stdout.contains("\u{1b}[?1049l"), "{signal}: {output}");
    }
    end_program(&house);
    running.finish().code(0);
}

/// Sends a signal to the joined process, by its id.
fn end_viewer(house: &House, signal: &str) {
    let needle = house.binary().display().to_string();
    let is_it = |words: &str| words.starts_with(&needle) && words.contains("\0attach\0");
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if is_it(&String::from_utf8_lossy(&words)) {
            let words = [format!("-{signal}"), entry.file_name().into_string().unwrap()];
            assert!(std::process::Command::new("kill").args(words).status().unwrap().success());
        }
    }
}

#[test]
fn a_screen_is_cropped_to_a_small_terminal() {
    let Some(house) = house_with_terminals() else { return };
    let line = "seq 20 | tr '\\n' ' '; echo; echo ready; read -r line";
    let running =
        start_playing(&house, line, json!([{ "shown": "ready" }, { "follow": "session_0" }]));
    let binary = house.binary();
    let small =
        format!("stty -echo rows 4 cols 20; exec {} shell attach session_0", binary.display());
    let Some(mut looks) = run_shell_on_terminal(&house, &small, unchanged_command) else { return };
    looks.wait_for_text("ready");
    looks.write(b"q");
    let output = looks.wait_with_open_input().code(0);
    assert!(output.stdout.contains("1 2 3 4 5 6 7 8 9 10"), "{:?}", output.stdout);
    assert!(!output.stdout.contains("1 2 3 4 5 6 7 8 9 10 11"), "{:?}", output.stdout);
    assert!(!output.stdout.contains("\u{1b}[5;"), "no fifth line: {:?}", output.stdout);
    end_program(&house);
    running.finish().code(0);
}

#[test]
fn partial_terminal_name_is_enough_if_it_is_unique() {
    let Some(house) = house_with_terminals() else { return };
    let terminal = |last: Value| {
        let steps = json!([{ "shown": "ready" }, last]);
        json!({ "program": "sh", "args": ["-c", ECHOES], "steps": steps })
    };
    let terminals = [
        terminal(json!({ "show": "session_0" })),
        terminal(json!({ "show": "session_1" })),
        terminal(json!({ "follow": "other" })),
    ];
    let played = json!({ "terminals": terminals }).to_string();
    let running = house.command(&["call", "play_terminals", &played]).no_input().start();
    wait_until("all three are listed", || list_terminals(&house).len() == 3);
    let output = house.run(&["shell", "attach", "session_"]).code(2);
    assert!(output.stderr.contains("`session_` matches 2 terminals"), "{output}");
    assert!(
        output.stderr.contains("/session_0, ") && output.stderr.contains("/session_1"),
        "{output}"
    );
    assert_eq!(house.run(&["shell", "attach", "n_1"]).expect_silent().stdout, "ready\n\n");
    let output = house.run(&["shell", "attach", "nowhere"]).code(2);
    assert!(output.stderr.contains("`jaato shell list` lists them"), "{output}");
    let Some(()) = type_into_terminal(&house, "other", unchanged_command, BYE) else { return };
    running.finish().code(0);
}

#[test]
fn typing_needs_a_terminal_and_sessions_cannot_attach() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    let output = house.run(&["shell", "attach", "session_0", "--type"]).code(2);
    assert!(output.stderr.contains("must be a terminal"), "{output}");
    for words in [&["shell", "list"][..], &["shell", "attach", "session_0"]] {
        let output = house.command(words).variable("JAATO_SESSION_ID", "s").run().code(6);
        assert!(output.stderr.contains("a session cannot join a terminal"), "{output}");
    }
    end_program(&house);
    running.finish().code(0);
}

/// Checks that a program of the model that uses the socket directly is rejected.
#[test]
fn commands_of_a_session_cannot_use_the_shell_socket() {
    let Some(house) = house_with_terminals() else { return };
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return skip("`python3` is not installed");
    }
    let running = start_echoing(&house);
    let ask = format!(
        "import socket,sys\ns = socket.socket(socket.AF_UNIX)\ns.connect({:?})\ns.sendall(b'{{\"request\":\"list\"}}\\n')\nprint('told', len(s.recv(100)))",
        list_sockets(&house)[0].display().to_string()
    );
    let outside = Command::program(&house, "python3", &["-c", &ask]).run().code(0);
    assert!(!outside.stdout.contains("told 0"), "{outside}");
    let steps = json!(["exit"]);
    let play = json!({ "program": "python3", "args": ["-c", ask], "steps": steps });
    let played = json!({ "terminals": [play] }).to_string();
    let inside = house.run(&["call", "play_terminals", &played]).code(0).json();
    let shown = inside["terminals"][0]["shown"].as_str().unwrap();
    // It finds a closed socket at some point.
    assert!(shown.contains("told 0") || shown.contains("Error"), "{shown}");
    end_program(&house);
    running.finish().code(0);
}

#[test]
fn other_users_cannot_use_the_shell_socket() {
    let Some(house) = house_with_terminals() else { return };
    if house.path().metadata().unwrap().uid() != 0 {
        return skip("only root can run as another user");
    }
    let running = start_echoing(&house);
    let socket = list_sockets(&house)[0].clone();
    // Even with all permissions open, the host checks its peers.
    let set =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mut way = Some(socket.as_path());
    while let Some(path) = way.filter(|path| path.starts_with(house.path())) {
        set(path, 0o777);
        way = path.parent();
    }
    let ask = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({:?})\nprint('told', len(s.recv(100)))",
        socket.display().to_string()
    );
    let output = Command::program(&house, "python3", &["-c", &ask]).user(STRANGER).run();
    if output.stderr.contains("Permission denied: '") || output.stderr.contains("PermissionError") {
        skip("other users cannot reach the test folder");
    } else {
        assert!(output.stdout.contains("told 0") || output.stderr.contains("Error"), "{output}");
    }
    // A folder that another user could replace is not searched.
    assert_eq!(house.run(&["shell", "list"]).expect_silent().stdout, "no terminals\n");
    for closed in [socket_folder(&house), house.path().join("run"), house.path().to_owned()] {
        set(&closed, 0o700);
    }
    let list = house.run(&["shell", "list"]).expect_silent();
    assert!(list.stdout.contains("session_0"), "{list}");
    end_program(&house);
    running.finish().code(0);
}

#[test]
fn socket_folder_of_another_user_is_not_searched() {
    let Some(house) = House::new() else { return };
    if house.path().metadata().unwrap().uid() != 0 {
        return skip("only root can run as another user");
    }
    fs::create_dir(socket_folder(&house)).unwrap();
    fs::set_permissions(socket_folder(&house), fs::Permissions::from_mode(0o755)).unwrap();
    let output = house.run(&["shell", "list"]).expect_silent();
    // A folder that other users can look into is not searched.
    assert_eq!(output.stdout, "no terminals\n");
    fs::set_permissions(socket_folder(&house), fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(socket_folder(&house), Some(STRANGER), Some(STRANGER)).unwrap();
    let _listens = UnixListener::bind(socket_folder(&house).join("1-0.sock")).unwrap();
    assert_eq!(house.run(&["shell", "list"]).expect_silent().stdout, "no terminals\n");
}

#[test]
fn socket_of_a_dead_host_is_removed_by_shell_list() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    fs::write(socket_folder(&house).join("note.txt"), "mine").unwrap();
    running.send_signal("KILL");
    running.wait_with_open_input();
    assert_eq!(list_sockets(&house).len(), 2);
    assert_eq!(house.run(&["shell", "list"]).expect_silent().stdout, "no terminals\n");
    assert_eq!(list_sockets(&house), [socket_folder(&house).join("note.txt")]);
    house.assert_no_processes();
}

#[test]
fn attached_client_is_notified_when_the_host_is_killed() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    let Some(looks) = run_on_terminal(&house, "shell attach session_0", unchanged_command) else {
        return;
    };
    looks.wait_for_text("viewing:");
    running.send_signal("KILL");
    running.wait_with_open_input();
    let output = looks.wait_with_open_input().code(1);
    assert!(output.stdout.contains("has ended"), "{:?}", output.stdout);
    assert!(output.stdout.contains("\u{1b}[?1049l"), "{:?}", output.stdout);
}

#[test]
fn no_socket_exists_when_joining_terminals_is_disabled() {
    let Some(house) = house_with_terminals() else { return };
    house.configure_more("[terminals]\njoin = false\n");
    let played = play_arguments(
        "echo ready",
        json!([{ "shown": "ready" }, { "show": "session_0" }, "exit"]),
    );
    let answer = house.run(&["call", "play_terminals", &played]).code(0).json();
    assert_eq!(answer["terminals"][0]["answers"][0], 0, "{answer}");
    assert!(!socket_folder(&house).exists());
}

#[test]
fn socket_folder_falls_back_to_the_temporary_folder() {
    let Some(house) = house_with_terminals() else { return };
    let temporary = house.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let change = |command: Command| {
        command.without_variable("XDG_RUNTIME_DIR").variable("TMPDIR", &temporary)
    };
    let played = play_arguments(ECHOES, json!([{ "shown": "ready" }, { "follow": "session_0" }]));
    let running = change(house.command(&["call", "play_terminals", &played]).no_input()).start();
    let own = temporary.join(format!("jaato-{}", house.path().metadata().unwrap().uid()));
    let list = || change(house.command(&["shell", "list"])).run().stdout;
    wait_until("it is listed", || list().contains("session_0"));
    assert_eq!(own.metadata().unwrap().mode() & 0o7777, 0o700);
    let Some(()) = type_into_terminal(&house, "session_0", change, BYE) else { return };
    running.finish().code(0);
}

#[test]
fn invalid_clients_are_rejected_without_affecting_others() {
    let Some(house) = house_with_terminals() else { return };
    let running = start_echoing(&house);
    for (sent, told) in [
        (b"garbage\n".to_vec(), "does not know the request"),
        (b"{\"request\":\"moonlight\"}\n".to_vec(), "does not know the request"),
        (vec![b'x'; 64 * 1024 + 1], "a line has more than 65536 bytes"),
        (b"{\"request\":\"type\",\"bytes\":[1]}\n".to_vec(), "must be shown before typing"),
        (
            b"{\"request\":\"attach\",\"session\":\"s\",\"terminal\":9,\"types\":true}\n".to_vec(),
            "does not show terminal 9",
        ),
    ] {
        let mut client = connect_to_board(&house);
        // A client that is rejected while it still sends finds a closed socket.
        let _ = client.write_all(&sent);
        let answer = read_line(&mut client);
        assert!(answer.contains(told), "{told}: {answer}");
    }
    // A watching client cannot type, and a client that asked for one terminal cannot see another.
    let mut client = connect_to_board(&house);
    client.write_all(attach_request(&house, false).as_bytes()).unwrap();
    assert!(read_line(&mut client).contains("attached"));
    client.write_all(b"{\"request\":\"type\",\"bytes\":[98,121,101,13]}\n").unwrap();
    let mut answer = read_line(&mut client);
    while answer.contains("\"screen\"") {
        answer = read_line(&mut client);
    }
    assert!(answer.contains("joined only for viewing"), "{answer}");
    // One client too many is refused, and the earlier ones are served.
    let mut silent: Vec<_> = (0..32).map(|_| connect_to_board(&house)).collect();
    let mut late = connect_to_board(&house);
    assert!(read_line(&mut late).contains("32 clients are already connected"));
    silent[0].write_all(b"{\"request\":\"list\"}\n").unwrap();
    assert!(read_line(&mut silent[0]).contains("session_0"));
    drop(silent);
    wait_until("there is room again", || house.run(&["shell", "list"]).stderr.is_empty());
    end_program(&house);
    running.finish().code(0);
}

/// Returns a client's message to join the only terminal.
fn attach_request(house: &House, types: bool) -> String {
    let mut client = connect_to_board(house);
    client.write_all(b"{\"request\":\"list\"}\n").unwrap();
    let answer: Value = serde_json::from_str(&read_line(&mut client)).unwrap();
    let Value::Object(mut request) = answer["terminals"][0].clone() else { panic!("{answer}") };
    request.insert("request".to_owned(), json!("attach"));
    request.insert("types".to_owned(), json!(types));
    format!("{}\n", Value::Object(request))
}

#[test]
fn slow_client_gets_the_newest_screen_and_delays_no_one() {
    let Some(house) = house_with_terminals() else { return };
    // Far more than a socket holds. Queued screens would all be read.
    let line_of = "echo ready; read -r go; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo \"line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; done; echo end of it; read -r line";
    let steps = json!([{ "shown": "ready" }, { "follow": "session_0" }]);
    let running = start_playing(&house, line_of, steps);
    let mut slow = connect_to_board(&house);
    slow.write_all(attach_request(&house, true).as_bytes()).unwrap();
    let Some(mut types) =
        run_on_terminal(&house, "shell attach session_0 --type", unchanged_command)
    else {
        return;
    };
    types.wait_for_text("typing:");
    types.write(b"go\r");
    types.wait_for_text("end of it");
    let mut screens = 0;
    loop {
        let reply: Value = serde_json::from_str(&read_line(&mut slow)).unwrap();
        if reply["reply"] == "screen" {
            screens += 1;
            let lines = reply["screen"]["lines"].as_array().unwrap();
            if lines.iter().any(|line| line == "end of it") {
                break;
            }
        }
    }
    assert!(screens < 1000, "{screens}");
    types.write(BYE);
    types.wait_with_open_input().code(0);
    running.finish().code(0);
}

#[test]
fn plugin_cannot_show_a_terminal_it_does_not_own() {
    let Some(house) = house_with_terminals() else { return };
    let played = play_arguments("echo ready", json!([{ "foreign": 4711 }]));
    let answer = house.run(&["call", "play_terminals", &played]).code(0).json();
    let told = answer["terminals"][0]["answers"][0].as_str().unwrap();
    assert_eq!(told, "plugin `fixture-terminals` has no terminal 4711");
}

#[test]
fn screen_events_are_rate_limited_and_include_the_last_screen() {
    let Some(house) = house_with_terminals() else { return };
    let line = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo \"line $i\"; done; echo end of it";
    let arguments: Value =
        serde_json::from_str(&play_arguments(line, json!([{ "follow": "session_0" }]))).unwrap();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "play_terminals", "arguments": arguments } }] },
        { "steps": [{ "text": "done" }] },
    ] }));
    let begin = Instant::now();
    let output = house.run(&["run", "--yes", "--output", "json", "go"]).code(0);
    let seconds = begin.elapsed().as_secs_f64();
    let events = output.json_lines();
    let screens: Vec<_> =
        events.iter().filter(|event| event["event"] == "terminal_screen").collect();
    let last = screens.last().unwrap();
    assert_eq!(last["is_alive"], false, "{last}");
    let lines = last["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line == "end of it"), "{last}");
    for (key, value) in
        [("source", "fixture-terminals"), ("name", "session_0"), ("command", "a program")]
    {
        assert_eq!(last[key], value);
    }
    // At most ten per second, the first at once, and the last when the terminal ends.
    let most = seconds * 10.0 + 3.0;
    assert!((screens.len() as f64) < most, "{} in {seconds} s", screens.len());
    let ledger = fs::read_to_string(house.home().join(".local/share/jaato/ledger.jsonl")).unwrap();
    assert!(!ledger.contains("line 1") && !ledger.contains("terminal_screen"), "{ledger}");
}
