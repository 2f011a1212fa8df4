//! Tests with folders that the environment cannot list.
#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use jaato_plugin_sdk::__private::detached_home;
use jaato_types::files::{
    FileBytes, FileFacts, FileLimits, FilePath, FileRead, FileWrite, FolderMake,
};

use super::*;

/// A folder `/ws` that can be listed, or fails with the given kind. Folders above it are not
/// allowed.
struct ListableFolder(Option<ErrorKind>);

fn failed_result<T>(kind: ErrorKind) -> Result<T> {
    Err(Error::new(kind, "it fails"))
}

impl Files for ListableFolder {
    async fn read(&self, _: &Reporter, _: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        failed_result(ErrorKind::NotFound)
    }

    async fn write(&self, _: &Reporter, _: FileWrite, _: Vec<u8>) -> Result<FileFacts> {
        failed_result(ErrorKind::NotFound)
    }

    async fn stat(&self, _: &Reporter, path: FilePath) -> Result<FileFacts> {
        assert_eq!(path.path, ".");
        Ok(FileFacts { path: "/ws".into(), ..FileFacts::default() })
    }

    async fn list(&self, _: &Reporter, list: FolderList) -> Result<FolderEntries> {
        match self.0 {
            _ if !list.path.starts_with("/ws") => failed_result(ErrorKind::PermissionDenied),
            Some(kind) => failed_result(kind),
            None => Ok(FolderEntries::default()),
        }
    }

    async fn delete(&self, _: &Reporter, _: FileDelete) -> Result<()> {
        failed_result(ErrorKind::NotFound)
    }

    async fn make_folder(&self, _: &Reporter, _: FolderMake) -> Result<()> {
        failed_result(ErrorKind::NotFound)
    }
}

#[test]
fn a_path_through_a_folder_that_cannot_be_listed_is_refused() {
    let denied = vec!["/ws/secret".to_owned()];
    let limits = CallLimits::new(FileLimits { denied, ..FileLimits::default() }).unwrap();
    let home = detached_home();
    let check = |files: ListableFolder, path: &str| {
        let by_path = LimitedFiles::new(&files, &home, &limits);
        let checked = by_path.check_path(
            FileOperationVerb::Read,
            path,
            PathOperation::Read,
            FinalLinkHandling::Refuse,
        );
        match pin!(checked).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(checked) => checked,
            Poll::Pending => panic!("it waits"),
        }
    };
    for path in ["a/b", "/ws/a/b", "/ws/a/../b"] {
        for kind in [ErrorKind::PermissionDenied, ErrorKind::Io, ErrorKind::Unavailable] {
            assert_eq!(check(ListableFolder(Some(kind)), path).unwrap_err().kind, kind, "{path}");
        }
        check(ListableFolder(None), path).unwrap();
        check(ListableFolder(Some(ErrorKind::NotFound)), path).unwrap();
    }
    for path in ["/etc/passwd", "/ws/../etc/passwd", "../etc/passwd", "/wsx/a"] {
        assert!(check(ListableFolder(None), path).is_err(), "{path}");
    }
}
