//! Tests of what commands can see and do in the sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::{ErrorKind, Value, json};
use jaato_plugin_sdk::types::Frame;
use jaato_plugin_sdk::types::execution::{EnvironmentFacts, EnvironmentSetup, SETUP, TEARDOWN};
use jaato_plugin_sdk::types::process::{
    OUTPUT, ProcessOutput, ProcessStartAnswer, ProcessWaitAnswer, START, Spawn, WAIT,
};
use jaato_plugin_testkit::{FakeHost, FakeInstance, skip};

/// An environment with its own folder.
struct BubblewrapFixture {
    host: FakeHost,
    workspace: PathBuf,
}

impl BubblewrapFixture {
    /// Returns `None` if the sandbox does not work here.
    fn new(name: &str, config: Value) -> Option<Self> {
        if !support::has_sandbox() {
            skip("`bwrap` is missing, or may make no sandbox");
            return None;
        }
        let workspace = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // An earlier run may have left this folder.
        let _ = std::fs::remove_dir_all(&workspace);
        std::fs::create_dir_all(workspace.join("private")).unwrap();
        let host = FakeHost::new(environment_bubblewrap::__jaato::MODULE).with_config(config);
        Some(Self { host, workspace })
    }

    fn set_up(&self) -> Result<EnvironmentFacts, ErrorKind> {
        let workspace = self.workspace.join("work");
        std::fs::create_dir_all(&workspace).unwrap();
        let mut setup = EnvironmentSetup::default();
        setup.id = "test".to_owned();
        setup.workspace = workspace.to_string_lossy().into_owned();
        let answer = ask_environment(self.host.instance().unwrap(), SETUP, &json!(setup));
        answer.map(|answer| Frame::read(&answer).unwrap())
    }

    /// Runs a shell command. Returns its output and its exit code.
    #[track_caller]
    fn run(&self, line: &str) -> (String, Option<i32>) {
        let instance = self.host.instance().unwrap();
        // Merged, as on a terminal.
        let spawn = json!(Spawn::shell(format!("exec 2>&1; {line}")));
        let started: ProcessStartAnswer =
            Frame::read(&ask_environment(instance, START, &spawn).unwrap()).unwrap();
        let named = json!({ "process": started.process });
        let waited = ask_environment(instance, WAIT, &named).unwrap();
        let waited: ProcessWaitAnswer = Frame::read(&waited).unwrap();
        let output = ask_environment(instance, OUTPUT, &named).unwrap();
        let parsed = Frame::parse(&output).unwrap();
        let _: ProcessOutput = parsed.json().unwrap();
        let printed = String::from_utf8(parsed.bytes.to_vec()).unwrap();
        (printed, waited.exit.unwrap().code)
    }

    fn take_down(self) {
        ask_environment(self.host.instance().unwrap(), TEARDOWN, &Value::Null).unwrap();
    }
}

fn ask_environment(
    instance: &FakeInstance,
    operation: &str,
    request: &Value,
) -> Result<Vec<u8>, ErrorKind> {
    let frame = Frame::write(request).unwrap();
    instance.environment(operation, frame).wait().result.map_err(|error| error.kind)
}

#[test]
fn command_reads_the_whole_machine_and_writes_only_its_own_folders() {
    let Some(lab) = BubblewrapFixture::new("writes", json!({})) else { return };
    let facts = lab.set_up().unwrap();
    let outside = lab.workspace.join("outside");
    assert_eq!(lab.run("echo moon > a.txt && cat a.txt"), ("moon\n".to_owned(), Some(0)));
    let written = std::fs::read_to_string(lab.workspace.join("work/a.txt")).unwrap();
    assert_eq!(written, "moon\n", "it is the machine's own file");
    let (printed, code) = lab.run(&format!("echo moon > '{}'", outside.display()));
    assert!(printed.contains("Read-only file system") && code != Some(0), "{printed}");
    assert!(!outside.exists());
    assert_eq!(lab.run("head -c 5 /etc/passwd").1, Some(0));
    let temporary = facts.temporary_directory.unwrap();
    let (printed, _) = lab.run("mktemp");
    assert!(printed.starts_with(&temporary), "{printed}");
    // Only the shell and its `bwrap` are visible.
    let (printed, _) = lab.run("ls -d /proc/[0-9]* | wc -l");
    assert!(printed.trim().parse::<u32>().unwrap() <= 5, "{printed}");
    lab.take_down();
    assert!(!Path::new(&temporary).exists());
}

#[test]
fn hidden_folder_looks_empty_and_disabled_network_has_only_loopback() {
    let Some(lab) = BubblewrapFixture::new(
        "hides",
        json!({ "hidden_paths": ["../private"], "network": false }),
    ) else {
        return;
    };
    std::fs::write(lab.workspace.join("private/key"), "secret").unwrap();
    lab.set_up().unwrap();
    assert_eq!(lab.run("ls -A ../private"), (String::new(), Some(0)));
    // Two header lines and the loopback device.
    assert_eq!(lab.run("wc -l < /proc/net/dev").0.trim(), "3");
    lab.take_down();
}

#[test]
fn a_workspace_must_not_be_hidden() {
    let Some(lab) = BubblewrapFixture::new("hidden", json!({ "hidden_paths": ["."] })) else {
        return;
    };
    assert_eq!(lab.set_up().unwrap_err(), ErrorKind::Configuration);
}

#[test]
fn background_process_outlives_its_command() {
    let Some(lab) = BubblewrapFixture::new("leaves", json!({})) else { return };
    lab.set_up().unwrap();
    // Its process id is invalid outside the sandbox, so use files to communicate with it.
    let line = "mkfifo go came; (read word <go; echo \"$word\" >came) >/dev/null 2>&1 & echo begun";
    assert_eq!(lab.run(line), ("begun\n".to_owned(), Some(0)));
    let work = lab.workspace.join("work");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        std::fs::write(work.join("go"), "moon\n").unwrap();
        tell.send(std::fs::read_to_string(work.join("came")).unwrap()).unwrap();
    });
    let came = told.recv_timeout(std::time::Duration::from_secs(30));
    assert_eq!(came.as_deref(), Ok("moon\n"), "it lives after its command");
    lab.take_down();
}

#[test]
fn missing_folders_and_programs_are_reported_before_anything_runs() {
    let Some(lab) = BubblewrapFixture::new("missing", json!({})) else { return };
    lab.set_up().unwrap();
    let instance = lab.host.instance().unwrap();
    let refused = |spawn: Spawn| ask_environment(instance, START, &json!(spawn)).unwrap_err();
    assert_eq!(refused(Spawn::program("no-such-moon")), ErrorKind::NotFound);
    assert_eq!(refused(Spawn::program("./moon")), ErrorKind::NotFound);
    assert_eq!(refused(Spawn::program("ls").directory("no-such-folder")), ErrorKind::NotFound);
    assert_eq!(refused(Spawn::program("ls").directory("/etc")), ErrorKind::PermissionDenied);
    assert_eq!(refused(Spawn::default()), ErrorKind::InvalidArguments);
    lab.take_down();
}
