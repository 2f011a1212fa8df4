//! The execution environment of a fake host's session: the files of its working directory, through
//! the sdk's code for environment plugins.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use jaato_plugin_sdk::Cx;
use jaato_plugin_sdk_environment::files::{AllowedFolder, ConfinedFiles, ConfinedFilesSettings};
use jaato_plugin_sdk_environment::{
    ExecutionEnvironment, HostFiles, NoShell, NoTerminals, StandaloneEnvironment,
};
use jaato_types::execution::{
    AllowedPath, DESCRIBE, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec, SETUP, STREAM_END,
    STREAM_KEY, STREAM_NEXT, StreamNext,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde::Serialize;
use serde_json::Value;

use super::context::frame_bug_error;
use super::services::{FakeServiceReply, ServiceRequest};
use super::stream::FakeStream;

/// The maximum number of answers of one stream: enough for the trees and files of tests.
const FRAMES_MAX: usize = 100_000;

/// Returns true if the session's environment answers a service.
pub(super) fn is_operation(operation: &str) -> bool {
    operation == DESCRIBE || operation.starts_with("files.")
}

/// The environment of one folder, which is set up at its first use.
#[derive(Default)]
pub(super) struct FakeSessionEnvironment(
    Option<(PathBuf, StandaloneEnvironment<LocalFolderEnvironment>)>,
);

impl FakeSessionEnvironment {
    /// Answers a service.
    pub(super) fn answer(
        &mut self,
        request: &ServiceRequest,
        folder: &Path,
    ) -> Result<FakeServiceReply> {
        let served = match &mut self.0 {
            Some((of, served)) if of == folder => served,
            kept => &kept.insert((folder.to_owned(), set_up(folder)?)).1,
        };
        let frame =
            Frame::write_with_bytes(&request.json, &request.bytes).map_err(frame_bug_error)?;
        let answer = poll_ready(served.answer(&request.operation, &frame))?;
        let parsed = Frame::parse(&answer).map_err(frame_bug_error)?;
        let mut json: Value = parsed.json().map_err(frame_bug_error)?;
        let stream = json.as_object_mut().and_then(|head| head.remove(STREAM_KEY));
        match stream.and_then(|number| number.as_u64()) {
            Some(number) => Ok(FakeServiceReply::StreamWith(json, read_stream(served, number)?)),
            None => Ok(FakeServiceReply::Bytes(json, parsed.bytes.to_vec())),
        }
    }
}

fn set_up(folder: &Path) -> Result<StandaloneEnvironment<LocalFolderEnvironment>> {
    let served = StandaloneEnvironment::new(());
    let mut setup = EnvironmentSetup::default();
    setup.workspace = folder.to_string_lossy().into_owned();
    poll_ready(served.answer(SETUP, &encode_frame(&setup)?))?;
    Ok(served)
}

/// Reads a stream of the environment to its end.
fn read_stream(
    served: &StandaloneEnvironment<LocalFolderEnvironment>,
    stream: u64,
) -> Result<FakeStream> {
    let (next, frames) = (StreamNext { stream, ..StreamNext::default() }, FakeStream::open());
    let next = encode_frame(&next)?;
    for _ in 0..FRAMES_MAX {
        let frame = poll_ready(served.answer(STREAM_NEXT, &next))?;
        let parsed = Frame::parse(&frame).map_err(frame_bug_error)?;
        if parsed.json == STREAM_END.to_string().as_bytes() {
            break;
        }
        match parsed.json {
            b"" => frames.push(parsed.bytes),
            _ => frames.push_frame(&parsed.json::<Value>().map_err(frame_bug_error)?, parsed.bytes),
        }
    }
    frames.finish();
    Ok(frames)
}

fn encode_frame(value: &impl Serialize) -> Result<Vec<u8>> {
    Frame::write(value).map_err(frame_bug_error)
}

/// Polls a future that never waits, because files of a test are read on this thread.
fn poll_ready<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(Error::new(ErrorKind::HostBug, "the fake host's files wait")),
    }
}

/// A folder of this machine.
struct LocalFolderEnvironment {
    files: HostFiles,
}

impl ExecutionEnvironment for LocalFolderEnvironment {
    type State = ();
    type Files = HostFiles;
    type Shell = NoShell;
    type Terminals = NoTerminals;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec { name: "local".to_owned(), ..EnvironmentSpec::default() }
    }

    async fn setup(_cx: &Cx, setup: EnvironmentSetup) -> Result<Self> {
        // A test may name its folder through a link, but a session gets the real path.
        let folder = Path::new(&setup.workspace).canonicalize().map_err(|error| {
            Error::new(ErrorKind::NotFound, format!("`{}`: {error}", setup.workspace))
        })?;
        let roots = vec![AllowedFolder::local(&folder)];
        let settings = ConfinedFilesSettings { roots, default_folder: folder, temporary: None };
        Ok(Self { files: HostFiles::new(ConfinedFiles::open(&settings)?) })
    }

    async fn facts(&self, _cx: &Cx) -> Result<EnvironmentFacts> {
        let folder = self.files.confined().default_folder().to_string_lossy().into_owned();
        let allowed = AllowedPath { path: folder.clone(), ..AllowedPath::default() };
        Ok(EnvironmentFacts {
            name: Self::spec().name,
            is_host: true,
            working_directory: folder,
            allowed_paths: vec![allowed],
            ..EnvironmentFacts::default()
        })
    }

    fn files(&self) -> Option<&HostFiles> {
        Some(&self.files)
    }
}
