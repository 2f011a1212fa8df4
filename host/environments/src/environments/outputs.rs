//! Keeps outputs that are too large for the model where the model works: in the session's
//! environment, unless that is this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_instances::DeltaCallback;
use jaato_places::{PlaceError, make_own_folder};
use jaato_session::{OutputStore, OutputWriter};
use jaato_types::files::{FileWrite, WRITE, WriteMode};
use jaato_types::{CallId, Error, ErrorKind, Frame, SessionId};

use super::scope::host_bug_error;
use super::{EnvironmentMember, Environments};
use crate::outputs::{
    OUTPUT_FILE_BYTES_MAX, OutputFile, file_name, numbered_name, too_large_error,
};

/// Maximum bytes per write.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of files with the same base name in an environment.
const SAME_NAMES_MAX: u64 = 1000;

/// The file of one call's output, written piece by piece.
enum OutputDestination {
    /// On this machine, with what gives a whole file its last path.
    Here(OutputFile, Option<KeepOutput>),
    /// In a session's environment.
    There(EnvironmentFile),
}

/// A growing file in a session's environment.
struct EnvironmentFile {
    host: Arc<Environments>,
    member: Arc<EnvironmentMember>,
    tell: DeltaCallback,
    /// The path as the session's tools see it.
    path: String,
    bytes: u64,
}

impl OutputDestination {
    /// Creates the file with that name, in the session's environment unless that is this machine.
    ///
    /// # Errors
    /// If it cannot be created, or `unavailable` if the environment has no folder for it.
    async fn create(
        store: &SessionOutputs,
        environment: Option<(Arc<Environments>, Arc<EnvironmentMember>)>,
        name: &str,
        tell: DeltaCallback,
    ) -> Result<Self, Error> {
        // Sessions can share the folder.
        let shared = format!("{}-{name}", store.session);
        if let Some((host, member)) = environment
            && let Some(folder) = member.output_folder(&host, &tell).await?
        {
            let name = file_name(&shared);
            let path = format!("{}/{name}", folder.trim_end_matches('/'));
            return Ok(Self::There(EnvironmentFile { host, member, tell, path, bytes: 0 }));
        }
        let path = match &store.kept {
            Some(KeptOutputs { begun_in, .. }) => {
                make_own_folder(begun_in).map_err(|error| output_place_error(&error))?;
                begun_in.join(file_name(name))
            }
            None => store.environments.outputs.path(&shared)?,
        };
        let file = OutputFile::create(path, OUTPUT_FILE_BYTES_MAX).await?;
        Ok(Self::Here(file, store.kept.as_ref().map(|kept| Arc::clone(&kept.keep))))
    }
}

impl OutputWriter for OutputDestination {
    fn path(&self) -> String {
        match self {
            Self::Here(file, _) => file.path().display().to_string(),
            Self::There(file) => file.path.clone(),
        }
    }

    fn byte_count(&self) -> u64 {
        match self {
            Self::Here(file, _) => file.written_bytes(),
            Self::There(file) => file.bytes,
        }
    }

    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            match self {
                Self::Here(file, _) => file.write(bytes).await,
                Self::There(file) => file.write(bytes).await,
            }
        })
    }

    fn finish<'a>(&'a mut self) -> BoxFuture<'a, String> {
        Box::pin(async move {
            let path = self.path();
            let Self::Here(_, Some(keep)) = self else { return path };
            let (keep, file) = (Arc::clone(keep), PathBuf::from(&path));
            // A file that cannot be moved keeps its first path.
            let kept = tokio::task::spawn_blocking(move || keep(&file)).await;
            kept.ok().flatten().map_or(path, |kept| kept.display().to_string())
        })
    }
}

impl EnvironmentFile {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.bytes + bytes.len() as u64 > OUTPUT_FILE_BYTES_MAX {
            return Err(too_large_error(OUTPUT_FILE_BYTES_MAX));
        }
        for piece in bytes.chunks(PIECE_BYTES_MAX) {
            if self.bytes == 0 {
                self.begin_file(piece).await?;
            } else {
                self.send_piece(&self.path, WriteMode::Append, piece).await?;
            }
            self.bytes += piece.len() as u64;
        }
        Ok(())
    }

    /// Creates the file under a free name, because a call of an earlier turn may have had the same
    /// id.
    async fn begin_file(&mut self, piece: &[u8]) -> Result<(), Error> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or_default();
        let (mut path, mut number) = (self.path.clone(), 2);
        while let Err(error) = self.send_piece(&path, WriteMode::CreateNew, piece).await {
            if error.kind != ErrorKind::Conflict || number > SAME_NAMES_MAX {
                return Err(error);
            }
            path = format!("{folder}/{}", numbered_name(name, number));
            number += 1;
        }
        self.path = path;
        Ok(())
    }

    async fn send_piece(&self, path: &str, mode: WriteMode, piece: &[u8]) -> Result<(), Error> {
        let write = FileWrite { path: path.to_owned(), mode, ..FileWrite::default() };
        let frame = Frame::write_with_bytes(&write, piece).map_err(host_bug_error)?;
        self.member.ask_environment(&self.host, WRITE, frame, &self.tell).await?;
        Ok(())
    }
}

impl EnvironmentMember {
    /// Returns the folder for outputs as the session's tools see it, or `None` if they see this
    /// machine's own files.
    async fn output_folder(
        &self,
        host: &Arc<Environments>,
        tell: &DeltaCallback,
    ) -> Result<Option<String>, Error> {
        let facts = self.scope().environment_facts(host, tell).await?;
        if facts.is_host && !facts.confines_commands {
            return Ok(None);
        }
        let folder = facts.temporary_directory.ok_or_else(|| {
            let text = format!(
                "the execution environment `{}` has no temporary folder to save output in",
                facts.name
            );
            Error::new(ErrorKind::Unavailable, text)
        });
        folder.map(Some)
    }
}

fn output_place_error(error: &PlaceError) -> Error {
    let made = Error::new(ErrorKind::Io, format!("cannot save the call's output: {error}"));
    error.hint().into_iter().fold(made, Error::with_hint)
}

/// Stores a session's outputs where the session works.
pub struct SessionOutputs {
    /// The environments.
    pub environments: Arc<Environments>,
    /// The session.
    pub session: SessionId,
    /// Where files on this machine outlive the process, if the session does.
    pub kept: Option<KeptOutputs>,
}

/// Moves a whole output to its last path, and returns that. Returns `None` if it cannot.
pub type KeepOutput = Arc<dyn Fn(&Path) -> Option<PathBuf> + Send + Sync>;

/// The files of a session that outlives its process.
pub struct KeptOutputs {
    /// The folder of files that are not complete yet.
    pub begun_in: PathBuf,
    /// Moves a whole file into [`KeptOutputs::kept_in`].
    pub keep: KeepOutput,
    /// The folder of whole files.
    pub kept_in: PathBuf,
}

impl OutputStore for SessionOutputs {
    fn create<'a>(
        &'a self,
        call: &'a CallId,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn OutputWriter>, Error>> {
        Box::pin(async move {
            let host = &self.environments;
            let environment = host.member_of(&self.session).map(|it| (Arc::clone(host), it));
            let name = format!("{call}-{label}.txt");
            let quiet: DeltaCallback = Arc::new(|_| {});
            let kept = OutputDestination::create(self, environment, &name, quiet).await?;
            Ok(Box::new(kept) as Box<dyn OutputWriter>)
        })
    }

    fn has_file(&self, path: &str) -> bool {
        // Files of earlier processes of the session, too.
        let kept = self.kept.as_ref().map(|kept| kept.kept_in.as_path());
        kept.is_some() && Path::new(path).parent() == kept
    }
}
