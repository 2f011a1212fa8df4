//! Containers that the user brought.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};
use environment_docker::{
    Container, ContainerCommandSpec, ContainerOrigin, DockerSettings, TerminalSize,
};
use jaato_plugin_sdk::types::{Error, ErrorKind};
use tempfile::TempDir;

use super::support::{
    EngineLab, IMAGE, read_to_end, read_until_text, run_shell, shell_command, shell_stdout,
    temporary_workspace, with_engine,
};

/// Creates a container as a user would, with a volume. It is not started if `command` is empty.
async fn create_user_container(lab: &EngineLab, volume: &str) -> String {
    let body = ContainerCreateBody {
        image: Some(IMAGE.to_owned()),
        cmd: Some(["sleep", "1000000"].map(str::to_owned).into()),
        host_config: Some(HostConfig {
            binds: Some(vec![volume.to_owned()]),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let created = lab.docker.create_container(None::<CreateContainerOptions>, body).await.unwrap();
    created.id
}

async fn start_by_id(lab: &EngineLab, id: &str) {
    lab.docker.start_container(id, None::<StartContainerOptions>).await.unwrap();
}

fn settings_for_container(id: &str) -> DockerSettings {
    DockerSettings { container_id: Some(id.to_owned()), ..DockerSettings::default() }
}

async fn setup_error(lab: &EngineLab, settings: &DockerSettings, folder: &Path) -> Error {
    let opened = Container::open_container(lab.engine.clone(), settings, folder).await;
    opened.map(|_| ()).expect_err("refused")
}

#[test]
fn existing_container_with_the_workspace_is_used_and_left_running() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        fs::create_dir(folder.path().join("project")).unwrap();
        let id = create_user_container(&lab, &format!("{}:/srv", folder.path().display())).await;
        start_by_id(&lab, &id).await;
        let project = folder.path().join("project");
        let container =
            Container::open_container(lab.engine.clone(), &settings_for_container(&id), &project)
                .await
                .unwrap();
        assert_eq!(container.origin(), ContainerOrigin::Brought);
        assert_eq!(container.paths().workspace_folder().container, Path::new("/srv/project"));
        assert_eq!(shell_stdout(&container, "pwd; echo x > made").await, "/srv/project\n");
        assert!(project.join("made").exists());
        container.close().await.unwrap();
        assert!(lab.is_running(&id).await);
        // No file of jaato stays in the user's folder.
        let left: Vec<_> =
            fs::read_dir(&project).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["made"]);
        lab.remove_container(&id).await;
    });
}

#[test]
fn existing_container_with_whole_workspace_starts_in_the_users_folder() {
    with_engine(async |lab| {
        let (root, id) = running_user_container(&lab).await;
        let folder = root.path().join("sub");
        fs::create_dir(&folder).unwrap();
        let opened = Container::open_for_subfolder(
            lab.engine.clone(),
            &settings_for_container(&id),
            root.path(),
            &folder,
        )
        .await;
        let container = opened.unwrap();
        let whole = container.paths().workspace_folder().container.clone();
        assert_eq!(shell_stdout(&container, "pwd").await, format!("{}/sub\n", whole.display()));
        container.close().await.unwrap();
        lab.remove_container(&id).await;
    });
}

#[test]
fn existing_container_with_only_the_users_folder_is_accepted() {
    with_engine(async |lab| {
        let root = temporary_workspace();
        let folder = root.path().join("sub");
        fs::create_dir(&folder).unwrap();
        let id = create_user_container(&lab, &format!("{}:/srv", folder.display())).await;
        start_by_id(&lab, &id).await;
        let opened = Container::open_for_subfolder(
            lab.engine.clone(),
            &settings_for_container(&id),
            root.path(),
            &folder,
        )
        .await;
        let container = opened.unwrap();
        assert_eq!(shell_stdout(&container, "pwd").await, "/srv\n");
        container.close().await.unwrap();
        lab.remove_container(&id).await;
    });
}

#[test]
fn dropping_an_existing_container_leaves_it_running() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let container = Container::open_container(
            lab.engine.clone(),
            &settings_for_container(&id),
            folder.path(),
        )
        .await
        .unwrap();
        drop(container);
        tokio::task::yield_now().await;
        assert!(lab.is_running(&id).await);
        lab.remove_container(&id).await;
    });
}

pub async fn running_user_container(lab: &EngineLab) -> (TempDir, String) {
    let folder = temporary_workspace();
    let id = create_user_container(lab, &format!("{}:/w", folder.path().display())).await;
    start_by_id(lab, &id).await;
    (folder, id)
}

#[test]
fn closing_an_existing_container_ends_its_background_processes() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let container = Container::open_container(
            lab.engine.clone(),
            &settings_for_container(&id),
            folder.path(),
        )
        .await
        .unwrap();
        let line = "(while :; do echo x >> ticks; sleep 0.02; done) >/dev/null 2>&1 &";
        assert_eq!(shell_stdout(&container, line).await, "");
        let ticks = folder.path().join("ticks");
        while !ticks.exists() {
            tokio::task::yield_now().await;
        }
        container.close().await.unwrap();
        // A process that has closed its output may need a moment to end.
        while lab.list_programs(&id).await != ["sleep 1000000"] {}
        lab.remove_container(&id).await;
    });
}

#[test]
fn guardian_killed_by_a_command_is_replaced() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let settings =
            DockerSettings { user: Some("0:0".to_owned()), ..settings_for_container(&id) };
        let container =
            Container::open_container(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        let before = container
            .start_command(shell_command("trap '' TERM; echo up; while :; do :; done"))
            .await
            .unwrap();
        read_until_text(&before, "up").await;
        let guardian = "for p in /proc/[0-9]*; do IFS= read -r l <$p/cmdline; \
                        case $l in sh*jaat[o]*) kill -9 ${p#/proc/};; esac; done; echo done";
        assert!(run_shell(&container, guardian).await.stdout.contains("done"));
        // Both earlier and current commands can be ended.
        before.end_command().await.unwrap();
        assert_eq!(read_to_end(&before).await.unwrap().code, Some(137));
        let command = container.start_command(shell_command("echo up; sleep 1000")).await.unwrap();
        read_until_text(&command, "up").await;
        command.end_command().await.unwrap();
        while command.next().await.unwrap().is_some() {}
        container.close().await.unwrap();
        lab.remove_container(&id).await;
    });
}

#[test]
fn restarted_existing_container_works_again_in_the_same_session() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let container = Container::open_container(
            lab.engine.clone(),
            &settings_for_container(&id),
            folder.path(),
        )
        .await
        .unwrap();
        let before = container.start_command(shell_command("echo up; sleep 1000")).await.unwrap();
        read_until_text(&before, "up").await;
        lab.kill_container(&id).await;
        assert_eq!(read_to_end(&before).await.unwrap_err().kind, ErrorKind::Unavailable);
        // The container stays ended until its owner starts it, even after several attempts.
        for _ in 0..2 {
            let error =
                container.start_command(shell_command("echo")).await.map(|_| ()).unwrap_err();
            assert!(error.hint.unwrap().contains(&format!("`docker start {id}`")));
        }
        start_by_id(&lab, &id).await;
        assert_eq!(shell_stdout(&container, "echo back").await, "back\n");
        let [note] = &container.take_user_notes()[..] else { panic!("expected one note") };
        assert!(note.contains("it runs again"), "{note}");
        let command = container
            .start_command(shell_command("trap '' TERM; echo up; while :; do :; done"))
            .await;
        let command = command.unwrap();
        read_until_text(&command, "up").await;
        command.end_command().await.unwrap();
        assert_eq!(read_to_end(&command).await.unwrap().code, Some(137), "its guardian runs too");
        container.close().await.unwrap();
        assert!(lab.is_running(&id).await);
        lab.remove_container(&id).await;
    });
}

#[test]
fn shell_that_prints_a_warning_before_the_command_still_works() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let shell = folder.path().join("bin/sh");
        // The same output as from bash with a missing locale, but without a line end.
        let script = "#!/bin/busybox sh\nprintf 'sh: warning: setlocale: LC_ALL' >&2\n\
                      exec /bin/busybox sh \"$@\"\n";
        fs::write(&shell, script).unwrap();
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
        let body = ContainerCreateBody {
            image: Some(IMAGE.to_owned()),
            cmd: Some(["sleep", "1000000"].map(str::to_owned).into()),
            env: Some(vec!["PATH=/w/bin:/bin".to_owned()]),
            host_config: Some(HostConfig {
                binds: Some(vec![format!("{}:/w", folder.path().display())]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let made = lab.docker.create_container(None::<CreateContainerOptions>, body).await;
        let id = made.unwrap().id;
        start_by_id(&lab, &id).await;
        let container = Container::open_container(
            lab.engine.clone(),
            &settings_for_container(&id),
            folder.path(),
        )
        .await
        .unwrap();
        let spec = |words: &[&str]| ContainerCommandSpec {
            words: words.iter().map(|&word| word.to_owned()).collect(),
            ..ContainerCommandSpec::default()
        };
        let told = |spec| async {
            read_to_end(&container.start_command(spec).await.unwrap()).await.unwrap()
        };
        let plain = told(spec(&["cat", "bin/sh"])).await;
        assert_eq!((plain.stdout.as_str(), plain.stderr.as_str()), (script, ""));
        // The command's own output is unchanged.
        let own = told(spec(&["/bin/busybox", "sh", "-c", "echo out; echo err >&2; exit 3"])).await;
        let expected = ("out\n", "err\n", Some(3));
        assert_eq!((own.stdout.as_str(), own.stderr.as_str(), own.code), expected);
        let missing = container.start_command(spec(&["moon"])).await.map(|_| ()).unwrap_err();
        assert_eq!(missing.message, "no program `moon` in the container");
        let size = TerminalSize { rows: 24, columns: 80 };
        let terminal = container.start_on_terminal(spec(&["cat", "bin/sh"]), size).await.unwrap();
        let mut shown = Vec::new();
        while let Some(bytes) = terminal.read_output().await.unwrap() {
            shown.extend(bytes);
        }
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.starts_with("#!/bin/busybox sh"), "{shown:?}");
        container.close().await.unwrap();
        lab.remove_container(&id).await;
    });
}

#[test]
fn existing_container_without_the_workspace_is_refused_with_a_hint() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let other = temporary_workspace();
        let error = setup_error(&lab, &settings_for_container(&id), other.path()).await;
        assert!(error.message.contains("does not have the workspace"), "{error}");
        assert!(error.hint.unwrap().contains("--volume"));
        let settings = DockerSettings {
            container_workdir: Some("/elsewhere".into()),
            ..settings_for_container(&id)
        };
        let error = setup_error(&lab, &settings, folder.path()).await;
        assert!(error.message.ends_with("at `/w`, not at `/elsewhere`"), "{error}");
        lab.remove_container(&id).await;
    });
}

#[test]
fn stopped_or_paused_existing_container_is_refused() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let id = create_user_container(&lab, &format!("{}:/w", folder.path().display())).await;
        let error = setup_error(&lab, &settings_for_container(&id), folder.path()).await;
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert_eq!(error.message, format!("the container `{id}` is not running"));
        start_by_id(&lab, &id).await;
        lab.docker.pause_container(&id).await.unwrap();
        let error = setup_error(&lab, &settings_for_container(&id), folder.path()).await;
        assert_eq!(error.message, format!("the container `{id}` is paused"));
        lab.docker.unpause_container(&id).await.unwrap();
        lab.remove_container(&id).await;
    });
}

#[test]
fn missing_container_is_reported_as_not_found() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let error =
            setup_error(&lab, &settings_for_container("jaato-test-nowhere"), folder.path()).await;
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert_eq!(error.message, "no container `jaato-test-nowhere`");
    });
}
