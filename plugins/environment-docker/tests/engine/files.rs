//! Files by their paths in the container, as commands in it see them.

use environment_docker::{Container, DockerSettings};
use jaato_plugin_sdk::types::ErrorKind;
use jaato_plugin_sdk::types::files::{FileRead, FileWrite};

use super::support::{EngineLab, shell_stdout, temporary_workspace, test_settings, with_engine};
use super::user_containers::running_user_container;

fn write_file(container: &Container, path: &str, text: &str) {
    let write = FileWrite { path: path.to_owned(), ..FileWrite::default() };
    container.files().confined().write(&write, text.as_bytes()).unwrap();
}

fn read_file(container: &Container, path: &str) -> String {
    let read = FileRead { path: path.to_owned(), ..FileRead::default() };
    String::from_utf8(container.files().confined().read(&read).unwrap().1).unwrap()
}

/// Checks that commands can read and change written files and vice versa, in both folders.
async fn check_files_agree(container: &Container) {
    let workspace = container.paths().workspace_folder().container.display().to_string();
    write_file(container, &format!("{workspace}/by-files"), "one");
    assert_eq!(
        shell_stdout(container, "cat by-files; echo two > by-files; echo x > by-command").await,
        "one"
    );
    assert_eq!(read_file(container, "by-files"), "two\n");
    assert_eq!(read_file(container, &format!("{workspace}/by-command")), "x\n");
    let tmp = container.paths().temporary_folder().container.display().to_string();
    write_file(container, &format!("{tmp}/kept"), "three");
    let line = format!("cat {tmp}/kept; echo four > {tmp}/told");
    assert_eq!(shell_stdout(container, &line).await, "three");
    assert_eq!(read_file(container, &format!("{tmp}/told")), "four\n");
}

async fn open_container(
    lab: &EngineLab,
    settings: DockerSettings,
    folder: &std::path::Path,
) -> Container {
    Container::open_container(lab.engine.clone(), &settings, folder).await.unwrap()
}

#[test]
fn created_container_and_the_file_service_see_the_same_files() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = open_container(&lab, test_settings(), folder.path()).await;
        check_files_agree(&container).await;
        container.close().await.unwrap();
    });
}

#[test]
fn existing_container_and_the_file_service_see_the_same_files() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let settings =
            DockerSettings { container_id: Some(id.clone()), ..DockerSettings::default() };
        let container = open_container(&lab, settings, folder.path()).await;
        check_files_agree(&container).await;
        container.close().await.unwrap();
        lab.remove_container(&id).await;
    });
}

#[test]
fn files_outside_the_shared_folders_are_refused_with_container_paths() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = open_container(&lab, test_settings(), folder.path()).await;
        shell_stdout(&container, "ln -s /etc link").await;
        for path in ["/etc/passwd", "../etc/passwd", "link/passwd"] {
            let read = FileRead { path: path.to_owned(), ..FileRead::default() };
            let error = container.files().confined().read(&read).unwrap_err();
            assert_eq!(error.kind, ErrorKind::PermissionDenied, "{path}: {error}");
            assert!(error.message.contains("`/workspace`"), "{path}: {error}");
        }
        container.close().await.unwrap();
    });
}

#[test]
fn additional_mounts_are_visible_to_commands_and_the_file_service() {
    with_engine(async |lab| {
        let (folder, other) = (temporary_workspace(), temporary_workspace());
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::create_dir(folder.path().join("kept")).unwrap();
        std::fs::write(folder.path().join("kept/file"), "kept").unwrap();
        let settings = DockerSettings {
            mount_dir: Some("sub".into()),
            mounts: vec![format!("{}:/other", other.path().display()), "kept:/kept:ro".to_owned()],
            ..test_settings()
        };
        let container = open_container(&lab, settings, folder.path()).await;
        check_files_agree(&container).await;
        assert!(folder.path().join("sub/by-command").is_file());
        write_file(&container, "/other/by-files", "one");
        assert_eq!(
            shell_stdout(&container, "cat /other/by-files; echo two > /other/told").await,
            "one"
        );
        assert_eq!(std::fs::read_to_string(other.path().join("told")).unwrap(), "two\n");
        assert_eq!(read_file(&container, "/kept/file"), "kept");
        let write = FileWrite { path: "/kept/file".to_owned(), ..FileWrite::default() };
        let refused = container.files().confined().write(&write, b"x").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{refused}");
        assert_eq!(
            shell_stdout(&container, "(echo x > /kept/file) 2>/dev/null || cat /kept/file").await,
            "kept"
        );
        container.close().await.unwrap();
    });
}

#[test]
fn mounts_are_refused_for_a_running_container() {
    with_engine(async |lab| {
        let (folder, id) = running_user_container(&lab).await;
        let settings = DockerSettings {
            container_id: Some(id.clone()),
            mounts: vec![format!("{}:/other", folder.path().display())],
            ..DockerSettings::default()
        };
        let opened = Container::open_container(lab.engine.clone(), &settings, folder.path()).await;
        let error = opened.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Configuration, "{error}");
        assert!(error.message.contains("is already running"), "{error}");
        lab.remove_container(&id).await;
    });
}
