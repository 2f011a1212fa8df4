//! Tests programs that use a server on loopback (`ssh`, `psql`), and `sudo`, which runs programs as
//! another user.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::shells::{
    ShellCalls, house_with_shells, is_installed, output_text, return_reason,
};
use crate::support::{is_root, skip};

/// Number of attempts to reach a starting server.
const LOOKS: usize = 200;

/// A server that ends with the test, and its folder. The folder is not the installation's, whose
/// processes must end.
struct ServerProcess(Child, #[expect(dead_code, reason = "goes with the server")] TempDir);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_until_listening(port: u16) {
    for _ in 0..LOOKS {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(crate::support::command::LOOK_AGAIN);
    }
    panic!("nothing listens on {port}");
}

/// Creates a key without a password.
fn create_key(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let made = Program::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&path)
        .status();
    assert!(made.unwrap().success());
    path
}

/// Starts a server that accepts this key, which only root can do.
fn start_sshd() -> Option<(ServerProcess, String)> {
    let sshd = PathBuf::from("/usr/sbin/sshd");
    if !is_root() || !sshd.is_file() {
        skip("no `sshd` can be started here");
        return None;
    }
    std::fs::create_dir_all("/run/sshd").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [host_key, user_key] = ["host_key", "user_key"].map(|name| create_key(folder.path(), name));
    let allowed = user_key.with_extension("pub");
    let port = free_port();
    let server = Program::new(sshd)
        .args(["-D", "-e", "-f", "/dev/null", "-o", "ListenAddress=127.0.0.1"])
        .args(["-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "PrintLastLog=no"])
        .args(["-o", "PrintMotd=no", "-o", "PidFile=none"])
        .args(["-o", &format!("AuthorizedKeysFile={}", allowed.display())])
        .args(["-h".as_ref(), host_key.as_os_str()])
        .args(["-p", &port.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = ServerProcess(server, folder);
    wait_until_listening(port);
    let command = format!(
        "ssh -F /dev/null -t -p {port} -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
         root@127.0.0.1 env PS1=far$ ENV= HISTFILE= ",
        user_key.display()
    );
    Some((server, command))
}

#[test]
fn prompt_marks_detect_the_end_of_commands_over_ssh() {
    let Some(house) = house_with_shells().filter(|_| is_installed("ssh")) else { return };
    let Some((_server, ssh)) = start_sshd() else { return };
    for (shell, name) in
        [("bash --norc --noprofile -i", "bash"), ("sh -i", "sh"), ("fish --no-config -i", "fish")]
    {
        if !is_installed(name) {
            continue;
        }
        let mut calls = ShellCalls::in_house(&house);
        let (session, spawned) = calls.spawn(&format!("{ssh}{shell}"));
        assert_eq!(return_reason(&spawned), "silence", "{spawned}");
        assert!(spawned["note"].as_str().unwrap().contains("mark_prompts"), "{spawned}");
        let marks = json!({ "session_id": session, "mark_prompts": name });
        assert_eq!(return_reason(&calls.call("shell_input", &marks)), "prompt");
        for (line, shown) in [
            ("echo fa''r\n", "far\n"),
            ("sleep 0.8; echo sle''pt\n", "slept\n"),
            ("sh -c 'for i in 1 2 3; do echo n$i; sleep 0.3; done'\n", "n3\n"),
        ] {
            let answer = calls.type_text(&session, line);
            assert_eq!(return_reason(&answer), "prompt", "{name}: {answer}");
            assert!(output_text(&answer).contains(shown), "{name}: {answer}");
        }
        let failed = calls.type_text(&session, "sh -c 'exit 7'\n");
        assert_eq!(failed["command_exit_code"], 7, "{failed}");
        // A forged mark is ignored.
        let forged = calls.type_text(
            &session,
            "printf '\\033]133;D;0\\007\\033]133;B\\007'; sleep 0.7; echo af''ter\n",
        );
        assert!(output_text(&forged).contains("after\n"), "{name}: {forged}");
        let left = calls.type_text(&session, "exit 4\n");
        assert_eq!((return_reason(&left), &left["exit_status"]), ("exit", &json!(4)));
        calls.end(&house);
    }
}

/// Starts a server as its own user, which postgres requires.
fn start_postgres() -> Option<(ServerProcess, String)> {
    let folder =
        std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().next()?.path().join("bin");
    if !is_root() || !folder.join("initdb").is_file() {
        skip("no postgres server can be started here");
        return None;
    }
    let data = tempfile::tempdir().unwrap();
    let status = Program::new("chown").arg("65534").arg(data.path()).status().unwrap();
    assert!(status.success());
    let as_nobody = |program: &str| {
        let mut command = Program::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
            .arg(folder.join(program))
            .current_dir(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let base = data.path().join("base");
    let made =
        as_nobody("initdb").args(["-A", "trust", "-U", "moon", "-N", "-D"]).arg(&base).status();
    assert!(made.unwrap().success());
    let port = free_port();
    let server = as_nobody("postgres")
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-F", "-k", "", "-D"])
        .arg(&base)
        .spawn()
        .unwrap();
    let server = ServerProcess(server, data);
    wait_until_listening(port);
    Some((server, format!("psql -X -h 127.0.0.1 -p {port} -U moon postgres")))
}

#[track_caller]
fn check_steps(calls: &mut ShellCalls, session: &str, steps: &[(&str, &str)]) {
    for (line, shown) in steps {
        let answer: Value = calls.type_text(session, line);
        assert!(output_text(&answer).contains(shown), "{line}: {answer}");
        assert_eq!(return_reason(&answer), "waiting", "{line}: {answer}");
    }
}

#[test]
fn psql() {
    let Some(house) = house_with_shells().filter(|_| is_installed("psql")) else { return };
    let Some((_server, psql)) = start_postgres() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let mut session = String::new();
    // The server listens before it accepts users.
    for _ in 0..LOOKS {
        let (id, spawned) = calls.spawn(&psql);
        session = id;
        if spawned["is_alive"] == true {
            break;
        }
        calls.close(&session);
    }
    check_steps(
        &mut calls,
        &session,
        &[
            ("select 6 * 7 as answer;\n", "42"),
            ("select pg_sleep(0.8), 'p' || (1 + 1);\n", "p2"),
            ("select *\n", "postgres-# "),
            ("from generate_series(1, 3);\n", "(3 rows)"),
            ("\\prompt 'Your name: ' who\n", "Your name: "),
            ("moon\n", "postgres=# "),
        ],
    );
    // Only the user may type a password.
    let asked = calls.type_text(&session, "\\password moon\n");
    assert_eq!(asked["expects"], "hidden_line", "{asked}");
    let input = json!({ "session_id": session, "input": "secret\n" });
    assert_eq!(calls.call_refused("shell_input", &input)["kind"], "permission_denied");
    calls.press_key(&session, "c-c");
    assert_eq!(return_reason(&calls.type_text(&session, "\\q\n")), "exit");
    calls.end(&house);
}

#[test]
fn wait_detection_works_for_another_user_through_sudo() {
    let Some(house) = house_with_shells().filter(|_| is_installed("sudo")) else { return };
    if !is_root() {
        skip("`sudo` asks for a password that the tests do not have");
        return;
    }
    let mut calls = ShellCalls::in_house(&house);
    let (session, spawned) = calls.spawn("sudo -u '#65534' env PS1=$ sh -i");
    assert_eq!(return_reason(&spawned), "waiting", "{spawned}");
    check_steps(
        &mut calls,
        &session,
        &[("id -u\n", "65534\n"), ("sleep 0.8; echo sle''pt\n", "slept\n"), ("cat\n", "")],
    );
    assert_eq!(output_text(&calls.type_text(&session, "moon\n")), "moon\n");
    assert_eq!(return_reason(&calls.press_key(&session, "c-d")), "waiting");
    assert_eq!(calls.type_text(&session, "exit 5\n")["exit_status"], 5);
    calls.end(&house);
}
