//! A full disk: the errors of files and commands, and their recovery when there is space again.

use std::path::{Path, PathBuf};
use std::process::Command;

use environment_docker::{Container, DockerSettings};
use jaato_plugin_sdk::types::files::{FileWrite, FolderList};
use jaato_plugin_sdk::types::{Error, ErrorKind};
use jaato_plugin_testkit::skip;
use tempfile::TempDir;

use super::support::{
    CommandOutput, run_shell, shell_stdout, temporary_workspace, test_settings, with_engine,
};

/// More than the disk holds.
const LARGE_BYTES: usize = 1024 * 1024;

/// A small disk in memory.
struct SmallDisk {
    place: PathBuf,
    _folder: TempDir,
}

impl SmallDisk {
    /// Mounts the disk. Returns `None` if the test may not mount.
    fn mount_disk(options: &str) -> Option<Self> {
        let folder = temporary_workspace();
        let place = folder.path().canonicalize().unwrap();
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", options, "jaato-test"]).arg(&place);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self { place, _folder: folder }),
            Ok(_) | Err(_) => {
                skip("a small disk cannot be mounted");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        &self.place
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because an engine may release it a moment later.
        let status = Command::new("umount").arg("--lazy").arg(&self.place).status();
        assert!(status.unwrap().success() || std::thread::panicking(), "it is still mounted");
    }
}

fn write_bytes(container: &Container, path: &str, bytes: usize) -> Result<(), Error> {
    let write = FileWrite { path: path.to_owned(), ..FileWrite::default() };
    container.files().confined().write(&write, &vec![b'x'; bytes]).map(drop)
}

fn list_names(container: &Container) -> Vec<String> {
    let listed = container.files().confined().list(&FolderList::default()).unwrap();
    listed.entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn full_disk_is_reported_until_space_is_free_again() {
    with_engine(async |lab| {
        let Some(disk) = SmallDisk::mount_disk("size=128k,mode=777") else { return };
        let container = lab.make_container(disk.path()).await;
        write_bytes(&container, "kept", 10).unwrap();
        let error = write_bytes(&container, "large", LARGE_BYTES).unwrap_err();
        assert_eq!((error.kind, error.hint.as_deref()), (ErrorKind::Io, Some("free some space")));
        assert_eq!(error.message, "cannot write `/workspace/large`: the disk is full");
        let error = write_bytes(&container, "kept", LARGE_BYTES).unwrap_err();
        assert_eq!(error.message, "cannot write `/workspace/kept`: the disk is full");
        assert_eq!(list_names(&container), ["kept"], "no partial file is left");
        assert_eq!(
            shell_stdout(&container, "cat kept").await,
            "xxxxxxxxxx",
            "the old content is intact"
        );
        let line = "dd if=/dev/zero of=zeros bs=1k count=1000";
        let CommandOutput { stderr, code, .. } = run_shell(&container, line).await;
        assert!(stderr.contains("No space left on device") && code == Some(1), "{stderr}");
        let error = write_bytes(&container, "more", 10).unwrap_err();
        assert_eq!(error.message, "cannot write `/workspace/more`: the disk is full");
        shell_stdout(&container, "rm zeros").await;
        write_bytes(&container, "more", 10).unwrap();
        container.close().await.unwrap();
    });
}

#[test]
fn full_temporary_folder_is_reported_before_a_container_is_created() {
    with_engine(async |lab| {
        // Space for the disk's own folder only.
        let Some(disk) = SmallDisk::mount_disk("size=128k,nr_inodes=1,mode=777") else { return };
        let tmp_base_dir = Some(disk.path().to_owned());
        let settings = DockerSettings { tmp_base_dir, ..test_settings() };
        let folder = temporary_workspace();
        let opened = Container::open_container(lab.engine.clone(), &settings, folder.path()).await;
        let error = opened.map(drop).expect_err("refused");
        assert_eq!(error.kind, ErrorKind::Io);
        let text = error.message;
        let place = disk.path().display();
        let expected = format!("cannot create a temporary folder in `{place}`: the disk is full");
        assert_eq!(text, expected);
    });
}
