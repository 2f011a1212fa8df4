//! Containers that jaato makes for a session.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use environment_docker::{Container, ContainerOrigin, DockerSettings};

use super::support::{shell_stdout, temporary_workspace, test_settings, with_engine};

#[test]
fn container_for_a_subfolder_shares_the_whole_workspace() {
    with_engine(async |lab| {
        let root = temporary_workspace();
        let folder = root.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        fs::write(root.path().join("top"), "moon").unwrap();
        let opened = Container::open_for_subfolder(
            lab.engine.clone(),
            &test_settings(),
            root.path(),
            &folder,
        )
        .await;
        let container = opened.unwrap();
        let told = shell_stdout(&container, "pwd; cat ../../top; echo x > made").await;
        assert_eq!(told, "/workspace/a/b\nmoon");
        assert!(folder.join("made").exists());
        let paths = container.paths();
        let real = folder.canonicalize().unwrap();
        assert_eq!(paths.to_host(Path::new("made")).unwrap(), real.join("made"));
        container.close().await.unwrap();
    });
}

#[test]
fn files_are_shared_both_ways_and_stay_the_users() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        fs::write(folder.path().join("given"), "from outside").unwrap();
        let container = lab.make_container(folder.path()).await;
        assert_eq!(
            shell_stdout(&container, "cat given; echo inside > made; pwd").await,
            "from outside/workspace\n"
        );
        let made = folder.path().join("made");
        assert_eq!(fs::read_to_string(&made).unwrap(), "inside\n");
        let owner = fs::metadata(folder.path()).unwrap();
        let file = fs::metadata(made).unwrap();
        assert_eq!((file.uid(), file.gid()), (owner.uid(), owner.gid()));
        container.close().await.unwrap();
    });
}

#[test]
fn temporary_folder_is_shared_with_the_container_until_close() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        let tmp = container.paths().temporary_folder().clone();
        fs::write(tmp.host.join("cut"), "whole output").unwrap();
        let told = container.paths().to_container(&tmp.host.join("cut")).unwrap();
        assert_eq!(told, Path::new("/tmp/jaato/cut"));
        assert_eq!(
            shell_stdout(&container, &format!("cat {}", told.display())).await,
            "whole output"
        );
        shell_stdout(&container, "echo x > /tmp/jaato/mine").await;
        container.close().await.unwrap();
        assert!(!tmp.host.exists());
    });
}

#[test]
fn created_container_is_removed_on_close_and_close_can_repeat() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        assert_eq!(container.origin(), ContainerOrigin::Made);
        assert!(lab.is_running(&container.id()).await);
        container.close().await.unwrap();
        assert!(!lab.container_exists(&container.id()).await);
        container.close().await.unwrap();
    });
}

#[test]
fn dropped_container_is_removed() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let container = lab.make_container(folder.path()).await;
        let (name, tmp) =
            (container.name().to_owned(), container.paths().temporary_folder().host.clone());
        drop(container);
        lab.wait_until_gone(&name).await;
        assert!(!tmp.exists());
    });
}

#[test]
fn container_kept_on_exit_keeps_running_and_can_be_reopened() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let settings = DockerSettings { cleanup_on_exit: false, ..test_settings() };
        let container =
            Container::open_container(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        assert_eq!(container.origin(), ContainerOrigin::MadeToStay);
        shell_stdout(&container, "echo kept > /workspace/kept").await;
        let name = container.name().to_owned();
        container.close().await.unwrap();
        assert!(lab.is_running(&name).await);
        let again =
            DockerSettings { container_id: Some(name.to_string()), ..DockerSettings::default() };
        let again =
            Container::open_container(lab.engine.clone(), &again, folder.path()).await.unwrap();
        assert_eq!(shell_stdout(&again, "cat kept").await, "kept\n");
        again.close().await.unwrap();
        assert!(lab.is_running(&name).await);
        lab.remove_container(&name).await;
    });
}

#[test]
fn cancelled_container_creation_leaves_nothing_behind() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let base = tempfile::tempdir().unwrap();
        let settings =
            DockerSettings { tmp_base_dir: Some(base.path().to_owned()), ..test_settings() };
        let opening = Container::open_container(lab.engine.clone(), &settings, folder.path());
        let mut opening = Box::pin(opening);
        // Dropped as soon as its folder exists and the engine has got the request.
        let name = loop {
            assert!(futures_util::poll!(&mut opening).is_pending());
            if let Some(entry) = fs::read_dir(base.path()).unwrap().next() {
                break entry.unwrap().file_name().into_string().unwrap();
            }
            tokio::task::yield_now().await;
        };
        while !lab.container_exists(&name).await {
            assert!(futures_util::poll!(&mut opening).is_pending());
        }
        drop(opening);
        lab.wait_until_gone(&name).await;
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    });
}

#[test]
fn container_facts_describe_its_system_and_user() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let settings =
            DockerSettings { container_workdir: Some(PathBuf::from("/src")), ..test_settings() };
        let container =
            Container::open_container(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        let facts = container.facts();
        let told =
            (facts.distribution.as_str(), facts.version.as_str(), facts.pretty_name.as_str());
        assert_eq!(told, ("jaatotest", "1.0", "Test Image 1.0"));
        assert_eq!((facts.kernel.as_str(), facts.shell.as_str()), ("Linux", "/bin/sh"));
        assert_eq!(facts.cwd, Path::new("/src"));
        assert_eq!(facts.machine, std::env::consts::ARCH);
        assert!(facts.workspace_is_writable);
        let owner = fs::metadata(folder.path()).unwrap();
        if !lab.engine.is_rootless() {
            assert_eq!((facts.uid, facts.gid), (owner.uid(), owner.gid()));
        }
        container.close().await.unwrap();
    });
}

#[test]
fn a_user_without_a_home_is_given_one() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let settings = DockerSettings { user: Some("77:88".to_owned()), ..test_settings() };
        let container =
            Container::open_container(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        let line = "echo $HOME; id -u; id -g; touch $HOME/x /tmp/jaato/y";
        assert_eq!(shell_stdout(&container, line).await, "/tmp/jaato/home\n77\n88\n");
        container.close().await.unwrap();
    });
}

#[test]
fn user_setting_container_runs_as_the_image_user() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let settings = DockerSettings { user: Some("container".to_owned()), ..test_settings() };
        let container =
            Container::open_container(lab.engine.clone(), &settings, folder.path()).await.unwrap();
        assert_eq!(shell_stdout(&container, "id -u").await, "0\n");
        container.close().await.unwrap();
    });
}
