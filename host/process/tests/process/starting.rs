//! Tests what a child gets, and the errors if it cannot be started.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;

use jaato_process::{
    ChildCommand, ErrorOutput, Exit, ProcessError, ProcessLimits, StandardInput, StandardOutput,
};
use tokio::io::AsyncWriteExt;

use crate::{is_process_alive, new_supervisor, read_all, script_command};

#[tokio::test]
async fn nothing_is_started_before_the_first_child() {
    let supervisor = new_supervisor();
    assert_eq!(supervisor.guardian_pid(), None);
    let child = supervisor.spawn(script_command("exit 0")).await.unwrap();
    assert!(is_process_alive(supervisor.guardian_pid().unwrap()));
    assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn output_and_exit_code_of_a_child_are_returned() {
    let mut child = spawn_command(script_command("echo out; echo err >&2; exit 7")).await;
    assert_eq!(read_all(&mut child).await, "out\nerr\n");
    assert_eq!(child.wait().await.unwrap(), Exit::Code(7));
    assert_eq!(child.wait().await.unwrap(), Exit::Code(7), "asked again");
}

async fn spawn_command(command: ChildCommand) -> SupervisedChild {
    let supervisor = new_supervisor();
    let child = supervisor.spawn(command).await.unwrap();
    SupervisedChild { child, _supervisor: supervisor }
}

/// A child together with the supervisor that keeps it alive.
struct SupervisedChild {
    child: jaato_process::ChildProcess,
    _supervisor: jaato_process::Supervisor,
}

impl std::ops::Deref for SupervisedChild {
    type Target = jaato_process::ChildProcess;
    fn deref(&self) -> &Self::Target {
        &self.child
    }
}

impl std::ops::DerefMut for SupervisedChild {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.child
    }
}

#[tokio::test]
async fn exit_by_a_signal_is_reported_as_a_signal() {
    let child = spawn_command(script_command("kill -TERM $$")).await;
    assert_eq!(child.wait().await.unwrap(), Exit::Signal(15));
}

#[tokio::test]
async fn standard_error_can_be_read_separately() {
    let mut command = script_command("echo out; echo err >&2");
    command.stderr = ErrorOutput::Separate(StandardOutput::Piped);
    let mut child = spawn_command(command).await;
    assert_eq!(read_all(&mut child).await, "out\n");
    child.stdout = child.stderr.take();
    assert_eq!(read_all(&mut child).await, "err\n");
}

#[tokio::test]
async fn input_without_a_pipe_ends_at_once_and_a_dropped_pipe_ends_it() {
    let mut child = spawn_command(script_command("cat; echo end")).await;
    assert_eq!(read_all(&mut child).await, "end\n");

    let mut command = script_command("cat; echo end");
    command.stdin = StandardInput::Piped;
    let mut child = spawn_command(command).await;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    drop(stdin);
    assert_eq!(read_all(&mut child).await, "hello\nend\n");
}

#[tokio::test]
async fn child_gets_only_the_variables_and_directory_of_its_command() {
    let mut command = ChildCommand::new("env", "/usr");
    command.stdout = StandardOutput::Piped;
    command.variables.insert("PATH".into(), "/usr/bin:/bin".into());
    command.variables.insert("ONLY".into(), "this = that".into());
    let mut child = spawn_command(command).await;
    assert_eq!(read_all(&mut child).await, "ONLY=this = that\nPATH=/usr/bin:/bin\n");
    let mut command = ChildCommand::new("/bin/pwd", "/usr");
    command.stdout = StandardOutput::Piped;
    let mut child = spawn_command(command).await;
    assert_eq!(read_all(&mut child).await, "/usr\n");
}

#[tokio::test]
async fn a_child_has_no_descriptor_but_its_own_and_default_signals() {
    let mut child = spawn_command(script_command("cd /proc/self/fd && echo *")).await;
    // The shell's own descriptors are 0 to 2. Expanding `*` opens one more for the directory.
    assert_eq!(read_all(&mut child).await, "0 1 2 3\n");
    // The shell itself reads the file, because it blocks signals while it starts another program.
    let text = "while read line; do echo \"$line\"; done < /proc/self/status";
    let mut child = spawn_command(script_command(text)).await;
    let text = read_all(&mut child).await;
    let sets = text.lines().filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"));
    let sets = sets.map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16));
    // Above the 31 signals that a program knows, the C library reserves two.
    let sets: Vec<_> = sets.map(|set| set.unwrap() & 0x7fff_ffff).collect();
    assert_eq!(sets, [0, 0], "{text}");
}

#[tokio::test]
async fn descriptor_3_is_passed_to_the_child() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut command =
        script_command("read line <&3; echo \"got $line\"; ls -l /proc/$$/fd/3 | grep -c socket");
    command.descriptor3 = Some(OwnedFd::from(far));
    let mut child = spawn_command(command).await;
    std::io::Write::write_all(&mut &near, b"through three\n").unwrap();
    assert_eq!(read_all(&mut child).await, "got through three\n1\n");
}

#[tokio::test]
async fn output_can_go_to_a_file_of_the_caller() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = script_command("echo out; echo err >&2");
    command.stdout = StandardOutput::Descriptor(file.reopen().unwrap().into());
    let child = spawn_command(command).await;
    assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "out\nerr\n");
}

#[tokio::test]
async fn ten_megabytes_arrive_whole() {
    let mut child = spawn_command(script_command("head -c 10485760 /dev/zero | tr '\\0' x")).await;
    let text = read_all(&mut child).await;
    assert_eq!(text.len(), 10_485_760);
    assert!(text.bytes().all(|byte| byte == b'x'));
    assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn wait_returns_when_the_command_exits_even_if_its_pipe_stays_open() {
    let mut child = spawn_command(script_command("sleep 300 & echo $!; exit 3")).await;
    assert_eq!(child.wait().await.unwrap(), Exit::Code(3));
    let pid = crate::read_pids(&mut child, 1).await[0];
    assert!(is_process_alive(pid), "what it left running must not end with it");
}

#[tokio::test]
async fn a_hundred_children_at_once_each_end_as_they_should() {
    let supervisor = new_supervisor();
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let supervisor = supervisor.clone();
            tokio::spawn(async move {
                let command = script_command(&format!("echo {number}; exit {number}"));
                let mut child = supervisor.spawn(command).await.unwrap();
                let text = read_all(&mut child).await;
                (text, child.wait().await.unwrap())
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let expected = (format!("{number}\n"), Exit::Code(number as i32));
        assert_eq!(task.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_memory_limit_is_honoured() {
    let large = || ChildCommand::new("/bin/dd", "/");
    let args = ["if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"].map(Into::into).to_vec();
    let free = ChildCommand { args: args.clone(), ..large() };
    assert_eq!(spawn_command(free).await.wait().await.unwrap(), Exit::Code(0));
    let limits = ProcessLimits { memory_bytes: Some(100 << 20), ..ProcessLimits::default() };
    let bound = ChildCommand { args, limits, ..large() };
    assert_eq!(spawn_command(bound).await.wait().await.unwrap(), Exit::Code(1));
}

#[tokio::test]
async fn limits_are_set_and_never_raised() {
    let mut command = script_command("ulimit -v; ulimit -n; ulimit -t");
    command.limits = ProcessLimits {
        memory_bytes: Some(512 << 20),
        open_files: Some(64),
        cpu_seconds: Some(30),
    };
    let mut child = spawn_command(command).await;
    assert_eq!(read_all(&mut child).await, "524288\n64\n30\n");
    let mut command = script_command("ulimit -Hn");
    let mut free = spawn_command(script_command("ulimit -Hn")).await;
    command.limits.open_files = Some(u64::MAX - 1);
    let mut child = spawn_command(command).await;
    assert_eq!(read_all(&mut child).await, read_all(&mut free).await);
}

async fn start_error(command: ChildCommand) -> ProcessError {
    new_supervisor().spawn(command).await.expect_err("it was started")
}

#[tokio::test]
async fn command_that_cannot_start_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let (file, nowhere) = (folder.path().join("file"), folder.path().join("nowhere"));
    std::fs::write(&file, "").unwrap();
    let error = start_error(ChildCommand::new(&nowhere, "/")).await;
    assert!(matches!(error, ProcessError::ProgramNotFound { .. }), "{error:?}");
    let text = format!("cannot start `{}`: no such program", nowhere.display());
    assert_eq!(error.to_string(), text);

    let mut command = ChildCommand::new("no-such-tool-here", "/");
    command.variables.insert("PATH".into(), "/usr/bin:/bin".into());
    assert!(matches!(start_error(command).await, ProcessError::ProgramNotFound { .. }));

    let error = start_error(ChildCommand::new(&file, "/")).await;
    assert!(matches!(error, ProcessError::NotExecutable { .. }), "{error:?}");

    let error = start_error(ChildCommand::new(folder.path(), "/")).await;
    assert!(matches!(error, ProcessError::NotExecutable { .. }), "{error:?}");

    let error = start_error(ChildCommand::new("/bin/true", &nowhere)).await;
    assert!(matches!(error, ProcessError::BadDirectory { .. }), "{error:?}");
    let text = format!("cannot work in `{}`: ", nowhere.display());
    assert!(error.to_string().starts_with(&text), "{error}");

    let error = start_error(ChildCommand::new("/bin/true", &file)).await;
    assert!(matches!(error, ProcessError::BadDirectory { .. }), "{error:?}");
}

#[tokio::test]
async fn invalid_command_is_refused_before_anything_starts() {
    let supervisor = new_supervisor();
    let zero = std::ffi::OsString::from_vec(b"a\0b".to_vec());
    let with = |change: &dyn Fn(&mut ChildCommand)| {
        let mut command = ChildCommand::new("/bin/true", "/");
        change(&mut command);
        command
    };
    let commands = [
        with(&|command| command.program = "".into()),
        with(&|command| command.directory = "here".into()),
        with(&|command| command.args = vec![zero.clone()]),
        with(&|command| drop(command.variables.insert("A=B".into(), "".into()))),
        with(&|command| drop(command.variables.insert("".into(), "".into()))),
    ];
    for command in commands {
        let text = format!("{command:?}");
        let error = supervisor.spawn(command).await.expect_err(&text);
        assert!(matches!(error, ProcessError::InvalidCommand { .. }), "{text}: {error:?}");
    }
    assert_eq!(supervisor.guardian_pid(), None);
}

#[tokio::test]
async fn large_arguments_work_and_too_large_ones_are_refused_clearly() {
    let arg = |kilobytes: usize| std::ffi::OsString::from("x".repeat(kilobytes * 1024 - 1));
    let count = |args: Vec<_>| {
        let mut command = script_command("echo $#");
        command.args.push("sh".into());
        command.args.extend(args);
        command
    };
    let mut child = spawn_command(count(vec![arg(100); 15])).await;
    assert_eq!(read_all(&mut child).await, "15\n");
    let error = start_error(count(vec![arg(100); 70])).await;
    assert!(matches!(error, ProcessError::ArgumentsTooLong { .. }), "{error:?}");
    let error = start_error(count(vec![arg(100); 90])).await;
    assert!(matches!(error, ProcessError::CommandTooLarge { .. }), "{error:?}");
}
