//! Tests files that are damaged, and disks that refuse.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{
    CONTINUE, RUN, assert_extends, only_id, request_messages, run_all, run_answer, session_file,
    session_ids, sessions_folder, set_up_house, text_answer,
};
use crate::support::openai::SECRET;
use crate::support::server::Server;
use crate::support::{
    Command, House, NOBODY, Output, can_start_as_nobody, is_root, set_mode, skip,
};

/// Returns an installation with a session of one message, and its file.
fn saved_session(server: &Server) -> Option<(House, PathBuf)> {
    let house = set_up_house()?;
    run_all(&house, server, &[&RUN, &["first"]]).code(0);
    let file = session_file(&house, &only_id(&house));
    Some((house, file))
}

/// Returns the CRC-32 of bytes, as zlib computes it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

/// Counts how often an output tells the user a text.
fn count_in_output(output: &Output, text: &str) -> usize {
    output.stderr.matches(text).count()
}

#[test]
fn torn_last_line_is_dropped_with_one_warning() {
    let server = Server::start([text_answer("one"), text_answer("two"), text_answer("three")]);
    let Some((house, file)) = saved_session(&server) else { return };
    let torn = b"{\"seq\":99,\"at\":\"20";
    OpenOptions::new().append(true).open(&file).unwrap().write_all(torn).unwrap();
    let output = run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    let text = format!("the last write did not finish: {} bytes were dropped", torn.len());
    assert_eq!(count_in_output(&output, &text), 1, "{output}");
    let again = run_all(&house, &server, &[&CONTINUE, &["third"]]).code(0);
    assert_eq!(count_in_output(&again, "dropped"), 0, "the file is repaired: {again}");
    let asked = server.requests();
    assert_extends(&asked[0], &asked[1]);
    assert_extends(&asked[1], &asked[2]);
}

#[test]
fn file_that_ends_anywhere_continues_with_what_is_whole() {
    let server = Server::start((0..40).map(|_| text_answer("one")));
    let Some((house, file)) = saved_session(&server) else { return };
    // The record with the model may be among those that are gone.
    house.configure("model = \"openai/test\"\n");
    let whole = fs::read(&file).unwrap();
    let header = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    // The ends of the lines, and the middle of each.
    let mut cuts = vec![header];
    for (at, _) in whole.iter().enumerate().skip(header).filter(|(_, byte)| **byte == b'\n') {
        cuts.extend([usize::midpoint(*cuts.last().unwrap(), at), at, at + 1]);
    }
    let before = request_messages(&server.requests()[0]);
    // Each run takes a while, so only some of them.
    for cut in cuts.into_iter().step_by(4) {
        fs::write(&file, &whole[..cut]).unwrap();
        let count = server.requests().len();
        run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
        let sent = request_messages(&server.requests()[count]);
        assert_eq!(sent[0], before[0], "{cut}");
        assert_eq!(sent.last().unwrap()["content"], "second", "{cut}");
        assert!([2, 4].contains(&sent.len()), "{cut}: {sent:#?}");
    }
}

#[test]
fn damaged_line_is_skipped_with_one_warning() {
    let server = Server::start((0..3).map(|_| text_answer("one")));
    let Some((house, file)) = saved_session(&server) else { return };
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    let text = fs::read_to_string(&file).unwrap();
    // A record in the middle that is not a message: the conversation stays whole.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines.iter().position(|line| line.contains(r#""type":"state""#)).unwrap();
    let damaged = lines[at].replacen("model", "moder", 1);
    assert_ne!(damaged, lines[at]);
    fs::write(&file, text.replacen(lines[at], &damaged, 1)).unwrap();
    let output = run_all(&house, &server, &[&CONTINUE, &["third"]]).code(0);
    let text = format!("the file is damaged: {} bytes from line {} on", damaged.len(), at + 1);
    assert_eq!(count_in_output(&output, &text), 1, "{output}");
    assert_extends(&server.requests()[1], &server.requests()[2]);
}

#[test]
fn damaged_message_leaves_a_conversation_that_a_provider_accepts() {
    let server = Server::start(
        [run_answer("echo one"), text_answer("one"), run_answer("echo two"), text_answer("two")]
            .into_iter()
            .chain((0..8).map(|_| text_answer("well"))),
    );
    let Some((house, file)) = saved_session(&server) else { return };
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_message = |line: &&&str| line.contains(r#""type":"message""#);
    for line in lines.iter().filter(is_message) {
        fs::write(&file, text.replacen(line, &line.replacen("role", "rule", 1), 1)).unwrap();
        let count = server.requests().len();
        let output = run_all(&house, &server, &[&CONTINUE, &["third"]]).code(0);
        assert_eq!(count_in_output(&output, "the file is damaged"), 1, "{output}");
        let sent = request_messages(&server.requests()[count]);
        let (mut open, mut before) = (0, "");
        for message in &sent {
            let role = message["role"].as_str().unwrap();
            if role == "tool" {
                assert!(open > 0, "{line}: {sent:#?}");
                open -= 1;
            } else {
                assert_eq!(open, 0, "{line}: {sent:#?}");
                assert_ne!(before, role, "{line}: {sent:#?}");
            }
            open += message["tool_calls"].as_array().map_or(0, Vec::len);
            before = role;
        }
        assert_eq!(sent.last().unwrap()["content"], "third");
    }
}

#[test]
fn file_that_is_no_session_is_refused_and_kept() {
    let data = r#"{"version":9,"id":"a","workspace":"/"}"#;
    let at = "2026-11-28T12:00:00Z";
    let newer =
        format!(r#"{{"seq":0,"at":"{at}","epoch":1,"type":"session","data":{data}"#).into_bytes();
    let end = format!(",\"crc32\":\"{:08x}\"}}\n", crc32(&newer));
    let newer = [newer.as_slice(), end.as_bytes()];
    for (content, text) in [
        (newer.concat(), "has format 9, and this jaato reads formats up to 1"),
        (Vec::new(), "is not a session file"),
        (b"\n\n".to_vec(), "is not a session file"),
        (b"not a session at all\n".to_vec(), "is not a session file"),
        (vec![0xff; 5000], "is not a session file"),
    ] {
        let server = Server::start([text_answer("one"), text_answer("two")]);
        let Some((house, file)) = saved_session(&server) else { return };
        let id = only_id(&house);
        fs::write(&file, &content).unwrap();
        let refused = run_all(&house, &server, &[&["run", "--resume", &id, "second"]]);
        assert_ne!(refused.code, 0, "{refused}");
        assert_eq!(refused.stdout, "");
        let errors = refused.stderr.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.filter(|line| line.contains(text)).count(), 1, "{refused}");
        assert_eq!(fs::read(&file).unwrap(), content);
        // New sessions are not affected.
        run_all(&house, &server, &[&RUN, &["another"]]).code(0);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn folder_in_place_of_the_file_is_refused() {
    let server = Server::start([text_answer("one")]);
    let Some((house, file)) = saved_session(&server) else { return };
    let id = only_id(&house);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let refused = run_all(&house, &server, &[&["run", "--resume", &id, "second"]]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains(file.to_str().unwrap()), "{refused}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn file_that_others_can_change_is_refused() {
    let server = Server::start([text_answer("one"), text_answer("two")]);
    let Some((house, file)) = saved_session(&server) else { return };
    set_mode(&file, 0o660);
    let refused = run_all(&house, &server, &[&CONTINUE, &["second"]]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains(file.to_str().unwrap()), "{refused}");
    set_mode(&file, 0o600);
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    assert_extends(&server.requests()[0], &server.requests()[1]);
}

#[test]
fn file_and_folder_that_others_can_read_become_private() {
    let server = Server::start([text_answer("one"), text_answer("two")]);
    let Some((house, file)) = saved_session(&server) else { return };
    let folder = file.parent().unwrap();
    set_mode(&file, 0o644);
    set_mode(folder, 0o755);
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&file), mode(folder)), (0o600, 0o700));
}

/// Runs a shell line in which `$JAATO` is the binary.
fn shell_line(house: &House, server: &Server, line: &str) -> Command {
    let command = Command::program(house, "sh", &["-c", line]);
    let command = command.variable("JAATO", house.binary()).no_input();
    let command = command.variable("OPENAI_BASE_URL", server.base_url());
    command.variable("OPENAI_API_KEY", SECRET)
}

/// The notice of a disk that refuses, after its reason.
const NOTICE: &str = "; the conversation continues, but ";

#[test]
fn file_at_its_size_limit_is_reported_once_and_the_run_continues() {
    let Some(house) = set_up_house() else { return };
    let long = "x".repeat(3000);
    let calls = || (0..5).map(|_| run_answer(&format!("echo {long}")));
    for limit in [0, 1, 4, 16] {
        let server = Server::start(calls().chain([text_answer("done")]));
        let words = format!("ulimit -f {limit}; exec \"$JAATO\" {} go", RUN.join(" "));
        let output = shell_line(&house, &server, &words).run().code(0);
        assert_eq!(output.stdout, "done\n", "{limit}: {output}");
        assert_eq!(count_in_output(&output, NOTICE), 1, "{limit}: {output}");
        assert_eq!(server.requests().len(), 6, "{limit}");
    }
    // The saved part can be continued.
    let server = Server::start([text_answer("well")]);
    let newest = session_ids(&house).pop().unwrap();
    run_all(&house, &server, &[&["run", "--resume", &newest, "please continue"]]).code(0);
    let sent = request_messages(&server.requests()[0]);
    assert_eq!(sent[1]["content"], "go", "{sent:#?}");
    assert_eq!(sent.last().unwrap()["content"], "please continue");
}

#[test]
fn sessions_folder_that_cannot_be_used_is_reported_once_and_the_run_continues() {
    let file: fn(&House) = |house| _ = house.write("home/.local/share/jaato/sessions", "");
    let open: fn(&House) = |house| {
        fs::create_dir_all(sessions_folder(house)).unwrap();
        set_mode(&sessions_folder(house), 0o777);
    };
    let link: fn(&House) = |house| {
        fs::create_dir_all(sessions_folder(house).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("nowhere", sessions_folder(house)).unwrap();
    };
    for (name, spoil) in [("file", file), ("open to all", open), ("dangling link", link)] {
        let Some(house) = set_up_house() else { return };
        spoil(&house);
        let server = Server::start([run_answer("echo one"), text_answer("done")]);
        let output = run_all(&house, &server, &[&RUN, &["go"]]).code(0);
        assert_eq!(output.stdout, "done\n", "{name}: {output}");
        assert_eq!(count_in_output(&output, NOTICE), 1, "{name}: {output}");
        house.assert_no_processes();
    }
}

#[test]
fn sessions_folder_without_permission_is_reported_once_and_the_run_continues() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([run_answer("echo one"), text_answer("done")]);
    if is_root() {
        if !can_start_as_nobody(&house) {
            skip("another user cannot run the installation's binary");
            return;
        }
        let owned = Command::program(&house, "chown", &["-R", &NOBODY.to_string(), "."]);
        owned.directory(house.path()).run().code(0);
    }
    fs::create_dir_all(sessions_folder(&house)).unwrap();
    set_mode(&sessions_folder(&house), 0o500);
    let words = format!("exec \"$JAATO\" {} go", RUN.join(" "));
    let command = shell_line(&house, &server, &words);
    let output = if is_root() { command.user(NOBODY) } else { command }.run().code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    assert_eq!(count_in_output(&output, NOTICE), 1, "{output}");
}

#[test]
fn full_disk_is_reported_once_and_the_run_continues() {
    let Some(house) = set_up_house() else { return };
    let mounts = Command::program(&house, "unshare", &["-m", "mount", "-t", "tmpfs", "x", "/mnt"]);
    if !is_root() || mounts.run().code != 0 {
        skip("only root can mount a small disk");
        return;
    }
    fs::create_dir_all(sessions_folder(&house)).unwrap();
    let long = "x".repeat(20_000);
    let server = Server::start(
        (0..5).map(|_| run_answer(&format!("echo {long}"))).chain([text_answer("done")]),
    );
    let folder = sessions_folder(&house).display().to_string();
    let mount = format!("mount -t tmpfs -o size=64k,mode=700 small '{folder}'");
    let script = format!("{mount} && exec \"$JAATO\" {} go", RUN.join(" "));
    let unshare = shell_line(&house, &server, "exec unshare -m sh -c \"$SCRIPT\"");
    let output = unshare.variable("SCRIPT", script).run().code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    assert_eq!(count_in_output(&output, NOTICE), 1, "{output}");
    assert_eq!(count_in_output(&output, "No space left on device"), 1, "{output}");
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn chat_that_cannot_be_saved_keeps_its_conversation() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start((0..5).map(|_| text_answer("yes")));
    let lines = ["a", "/rewind 1", "b", "/fork", "c", "/rename moon", "d"].join("\\n");
    let chat = "\"$JAATO\" chat --model openai/test";
    let script = format!("ulimit -f 0; printf '{lines}\\n' | {chat}");
    let output = shell_line(&house, &server, &script).run();
    assert_eq!(output.stdout, "yes\n".repeat(4), "{output}");
    assert_eq!(count_in_output(&output, NOTICE), 1, "{output}");
    let asked = server.requests();
    for pair in asked.windows(2) {
        assert_extends(&pair[0], &pair[1]);
    }
}

#[test]
fn messages_that_are_left_out_are_reported() {
    let server = Server::start([run_answer("echo one"), text_answer("one"), text_answer("two")]);
    let Some((house, file)) = saved_session(&server) else { return };
    let text = fs::read_to_string(&file).unwrap();
    let is_first = |line: &&str| line.contains(r#""type":"message""#);
    let line = text.split_inclusive('\n').find(is_first).unwrap();
    fs::write(&file, text.replacen(line, &line.replacen("role", "rule", 1), 1)).unwrap();
    let output = run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    assert!(output.stderr.contains("were left out"), "{output}");
}
