//! Commands: their input, output and environment.

use std::time::{Duration, Instant};

use environment_docker::{
    CommandEvent, CommandExit, CommandInput, ContainerCommandSpec, EngineRuntime,
};
use jaato_plugin_sdk::types::ErrorKind;
use jaato_plugin_sdk::types::process::LeftoverProcess;

use super::support::{
    CommandOutput, engine_address, read_to_end, read_until_text, run_shell, shell_command,
    shell_stdout, temporary_workspace, test_settings, with_container, with_engine,
};

#[test]
fn stdout_stderr_and_exit_code_are_reported_separately() {
    with_container(async |container| {
        let told = run_shell(container, "echo out; echo err >&2; exit 3").await;
        let expected =
            CommandOutput { stdout: "out\n".to_owned(), stderr: "err\n".to_owned(), code: Some(3) };
        assert_eq!(told, expected);
    });
}

#[test]
fn command_words_folder_and_variables_arrive_unchanged() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        std::fs::create_dir(folder.path().join("sub dir")).unwrap();
        let container = lab.make_container(folder.path()).await;
        let words = ["sh", "-c", "pwd; echo \"$A|$1|$2\"", "sh", "$(x) 'y'", ""];
        let spec = ContainerCommandSpec {
            words: words.map(str::to_owned).into(),
            folder: Some("sub dir".into()),
            variables: vec![("A".to_owned(), "a=b\nc".to_owned())],
            stdin: CommandInput::Closed,
        };
        let told = read_to_end(&container.start_command(spec).await.unwrap()).await.unwrap();
        assert_eq!(told.stdout, "/workspace/sub dir\na=b\nc|$(x) 'y'|\n");
        container.close().await.unwrap();
    });
}

#[test]
fn host_variables_are_not_passed_to_commands() {
    with_container(async |container| {
        assert_eq!(shell_stdout(container, "echo ${CARGO_MANIFEST_DIR-none}").await, "none\n");
    });
}

#[test]
fn write_to_an_ended_command_fails_with_or_without_reader() {
    with_container(async |container| {
        let much = vec![b'x'; 8 * 1024 * 1024];
        let start = async || {
            let spec =
                ContainerCommandSpec { stdin: CommandInput::Piped, ..shell_command("head -c 3") };
            container.start_command(spec).await.unwrap()
        };
        let unread = start().await;
        let error = unread.write_input(&much).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io);
        assert!(error.message.starts_with("the command no longer reads input"), "{error}");
        assert_eq!(read_to_end(&unread).await.unwrap().stdout, "xxx");
        let read_on = start().await;
        let (written, told) = tokio::join!(read_on.write_input(&much), read_to_end(&read_on));
        assert_eq!(written.unwrap_err().kind, ErrorKind::Io);
        assert_eq!(told.unwrap().code, Some(0));
        let again = read_on.write_input(b"more").await.unwrap_err();
        assert_eq!(again.message, "the command no longer reads input: it has ended");
    });
}

#[test]
fn input_is_written_and_closed() {
    with_container(async |container| {
        let command = container
            .start_command(ContainerCommandSpec {
                stdin: CommandInput::Piped,
                ..shell_command("cat; echo end")
            })
            .await
            .unwrap();
        command.write_input(b"one ").await.unwrap();
        assert_eq!(read_until_text(&command, "one ").await, "one ");
        command.write_input(b"two ").await.unwrap();
        command.close_input().await;
        let told = read_to_end(&command).await.unwrap();
        assert_eq!((told.stdout.as_str(), told.code), ("two end\n", Some(0)));
        assert_eq!(command.write_input(b"x").await.unwrap_err().kind, ErrorKind::Io);
    });
}

#[test]
fn command_without_input_reads_end_of_file() {
    with_container(async |container| {
        assert_eq!(shell_stdout(container, "cat; echo end").await, "end\n");
    });
}

#[test]
fn output_arrives_while_the_command_runs() {
    with_container(async |container| {
        let command = container
            .start_command(ContainerCommandSpec {
                stdin: CommandInput::Piped,
                ..shell_command("echo first; read x; echo $x")
            })
            .await
            .unwrap();
        assert_eq!(read_until_text(&command, "first\n").await, "first\n");
        command.write_input(b"second\n").await.unwrap();
        assert_eq!(read_to_end(&command).await.unwrap().stdout, "second\n");
    });
}

#[test]
fn large_output_arrives_complete() {
    with_container(async |container| {
        let command = container
            .start_command(shell_command("dd if=/dev/zero bs=65536 count=256 2>/dev/null"))
            .await;
        let command = command.unwrap();
        let mut bytes = 0;
        while let Some(piece) = command.next().await.unwrap() {
            match piece {
                CommandEvent::Stdout(piece) => bytes += piece.len(),
                CommandEvent::Stderr(piece) => panic!("{}", String::from_utf8_lossy(&piece)),
                CommandEvent::Exit(exit) => assert_eq!(exit.code, 0),
            }
        }
        assert_eq!(bytes, 16 * 1024 * 1024);
    });
}

#[test]
fn a_missing_program_and_a_missing_folder_are_errors() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        let spec = ContainerCommandSpec {
            words: vec!["no-such-program".to_owned()],
            ..ContainerCommandSpec::default()
        };
        let error = container.start_command(spec).await.map(|_| ()).unwrap_err();
        assert_eq!(error.message, "no program `no-such-program` in the container");
        assert_eq!(error.kind, ErrorKind::NotFound);
        let nowhere =
            ContainerCommandSpec { folder: Some("/no/where".into()), ..shell_command("echo") };
        let error = container.start_command(nowhere).await.map(|_| ()).unwrap_err();
        assert_eq!(error.message, "no folder `/no/where` in the container");
        let error =
            container.start_command(ContainerCommandSpec::default()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.message, "the command is empty");
        container.close().await.unwrap();
    });
}

#[test]
fn background_process_does_not_delay_the_end_of_its_command() {
    with_container(async |container| {
        let start = Instant::now();
        let command = container.start_command(shell_command("sleep 1000 & echo $!")).await.unwrap();
        let Some(CommandEvent::Stdout(pid)) = command.next().await.unwrap() else {
            panic!("no output")
        };
        let pid = String::from_utf8(pid).unwrap().trim().parse().unwrap();
        let left_running = vec![LeftoverProcess { pid, name: "sleep".to_owned() }];
        let exit = CommandExit { code: 0, left_running };
        assert_eq!(command.next().await.unwrap(), Some(CommandEvent::Exit(exit)));
        assert_eq!(command.next().await.unwrap(), None);
        // The engine itself waits two seconds for processes that hold the output.
        assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    });
}

#[test]
fn commands_run_in_parallel() {
    with_container(async |container| {
        // Each command waits for the other.
        let meet = |mine, other| {
            shell_command(&format!(
                "touch {mine}; while [ ! -e {other} ]; do sleep 0.01; done; echo {mine}"
            ))
        };
        let (one, two) = (meet("a", "b"), meet("b", "a"));
        let (one, two) = tokio::join!(container.start_command(one), container.start_command(two));
        let (one, two) = (one.unwrap(), two.unwrap());
        let (one, two) = tokio::join!(read_to_end(&one), read_to_end(&two));
        assert_eq!((one.unwrap().stdout.as_str(), two.unwrap().stdout.as_str()), ("a\n", "b\n"));
    });
}

#[test]
fn commands_work_from_an_executor_without_tokio_drivers() {
    with_engine(async |_| {
        let text = tokio::task::spawn_blocking(|| {
            let runtime = EngineRuntime::start_thread().unwrap();
            let folder = temporary_workspace();
            let path = folder.path().to_owned();
            let work = runtime.run_future(async move {
                let deadline = test_settings().engine_deadline();
                let engine =
                    environment_docker::DockerEngine::connect_to_engine(engine_address(), deadline)
                        .await?;
                let container =
                    environment_docker::Container::open_container(engine, &test_settings(), &path)
                        .await?;
                let told =
                    read_to_end(&container.start_command(shell_command("echo hello")).await?)
                        .await?;
                container.close().await?;
                Ok(told.stdout)
            });
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
        });
        assert_eq!(text.await.unwrap().unwrap(), "hello\n");
    });
}
