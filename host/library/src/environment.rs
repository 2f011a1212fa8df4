//! An execution environment that the program itself uses, and lends to sessions.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jaato_runtime::SharedEnvironment;
use jaato_runtime::saved::new_session_id;
use jaato_runtime::session_loop::Cancel;
use jaato_runtime::types::execution::EnvironmentFacts;
use jaato_runtime::types::files::{
    self, FileDelete, FileFacts, FilePath, FileRead, FileReadText, FileText, FileWrite,
    FolderEntries, FolderList,
};
use jaato_runtime::types::process::{OutputStream, Spawn};
use jaato_runtime::types::{Error, ErrorKind, Frame, Result, SessionId};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::builder::Jaato;

/// The maximum number of bytes of a command's output that are kept for each stream.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An environment that is set up. It is taken down after [`OpenEnvironment::close`], or after a
/// drop, when the last session that borrows it has ended.
pub struct OpenEnvironment {
    jaato: Jaato,
    id: SessionId,
    shared: SharedEnvironment,
    facts: EnvironmentFacts,
    resources: ResourceRegistry,
    /// Where a dropped environment ends. `None` after [`OpenEnvironment::close`].
    runtime: Option<Handle>,
}

impl OpenEnvironment {
    pub(crate) async fn open(
        jaato: Jaato,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<Self> {
        let (id, shared) = (new_session_id(), jaato.runtime().create_environment(name, options)?);
        jaato.runtime().enter_environment(&id, &shared)?;
        let (resources, runtime) = (ResourceRegistry::default(), Some(Handle::current()));
        // Leaves the environment if the setup fails, or if this future is dropped before it ends.
        let mut open =
            Self { jaato, id, shared, facts: EnvironmentFacts::default(), resources, runtime };
        open.facts = open.jaato.runtime().environment_facts(&open.id, |_| {}).await?;
        Ok(open)
    }

    /// Returns what is known about it: its folders, its system, its shell.
    pub fn facts(&self) -> &EnvironmentFacts {
        &self.facts
    }

    /// Returns its files.
    pub fn files(&self) -> EnvironmentFiles<'_> {
        EnvironmentFiles(self)
    }

    /// Returns its shell.
    pub fn shell(&self) -> EnvironmentShell<'_> {
        EnvironmentShell(self)
    }

    /// Returns the program's resources in it, which close with it.
    pub fn resources(&self) -> &ResourceRegistry {
        &self.resources
    }

    /// Closes the resources, and then the environment unless sessions still borrow it.
    ///
    /// # Errors
    /// The first error of a resource. Everything is closed regardless.
    pub async fn close(mut self) -> Result<()> {
        let closed = self.resources.close_all().await;
        self.jaato.runtime().leave_environment(&self.id).await;
        self.runtime = None;
        closed
    }

    pub(crate) fn shared_environment(&self) -> SharedEnvironment {
        self.shared.clone()
    }

    async fn request_operation<T: Serialize>(
        &self,
        operation: &str,
        request: &T,
        bytes: &[u8],
    ) -> Result<Vec<u8>> {
        let frame = Frame::write_with_bytes(request, bytes)
            .map_err(|error| Error::new(ErrorKind::LimitReached, error.to_string()))?;
        self.jaato.runtime().request_files(&self.id, operation, frame).await
    }
}

impl Drop for OpenEnvironment {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (jaato, id) = (self.jaato.clone(), self.id.clone());
        let resources = std::mem::take(&mut self.resources);
        drop(runtime.spawn(async move {
            // No one is left to hear about an error.
            let _ = resources.close_all().await;
            jaato.runtime().leave_environment(&id).await;
        }));
    }
}

/// The files of an environment. Relative paths begin at its working directory.
pub struct EnvironmentFiles<'a>(&'a OpenEnvironment);

impl EnvironmentFiles<'_> {
    /// Reads a text file, at most 1 MiB of it. The answer says whether there is more.
    ///
    /// # Errors
    /// If the file does not exist, is outside of the allowed folders, or is not UTF-8.
    pub async fn read_text(&self, path: &str) -> Result<FileText> {
        let request = FileReadText { path: path.to_owned(), ..FileReadText::default() };
        parse_frame(&self.0.request_operation(files::READ_TEXT, &request, &[]).await?)
    }

    /// Reads a range of bytes, at most 4 MiB.
    ///
    /// # Errors
    /// If the file does not exist, or is outside of the allowed folders.
    pub async fn read(&self, request: &FileRead) -> Result<Vec<u8>> {
        let answer = self.0.request_operation(files::READ, request, &[]).await?;
        Ok(Frame::parse(&answer).map_err(invalid_answer_error)?.bytes.to_vec())
    }

    /// Replaces a file, or creates it.
    ///
    /// # Errors
    /// If its folder does not exist, or is outside of the allowed folders.
    pub async fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<FileFacts> {
        let request = FileWrite { path: path.to_owned(), ..FileWrite::default() };
        parse_frame(&self.0.request_operation(files::WRITE, &request, content.as_ref()).await?)
    }

    /// Lists a folder.
    ///
    /// # Errors
    /// If it does not exist, or is outside of the allowed folders.
    pub async fn list(&self, path: &str) -> Result<FolderEntries> {
        let request = FolderList { path: path.to_owned(), ..FolderList::default() };
        parse_frame(&self.0.request_operation(files::LIST, &request, &[]).await?)
    }

    /// Returns the facts about a file or folder.
    ///
    /// # Errors
    /// If it does not exist, or is outside of the allowed folders.
    pub async fn stat(&self, path: &str) -> Result<FileFacts> {
        let request = FilePath { path: path.to_owned(), ..FilePath::default() };
        parse_frame(&self.0.request_operation(files::STAT, &request, &[]).await?)
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// If it does not exist, or is outside of the allowed folders.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let request = FileDelete { path: path.to_owned(), ..FileDelete::default() };
        self.0.request_operation(files::DELETE, &request, &[]).await.map(drop)
    }
}

/// Runs commands in an environment.
pub struct EnvironmentShell<'a>(&'a OpenEnvironment);

/// How a command ended, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOutput {
    /// The exit code, or `None` if a signal ended the command.
    pub code: Option<i32>,
    /// Whether the command exceeded its time limit.
    pub timed_out: bool,
    /// The standard output, at most 16 MiB.
    pub stdout: String,
    /// The error output, at most 16 MiB.
    pub stderr: String,
}

impl EnvironmentShell<'_> {
    /// Runs a command line in `sh`, for as long as the environment allows. Dropping the future ends
    /// the command.
    ///
    /// # Errors
    /// If it cannot start. A failing command is not an error.
    pub async fn execute(&self, line: &str) -> Result<ShellOutput> {
        self.run_program(&Spawn::shell(line)).await
    }

    /// Like [`EnvironmentShell::execute`], with a time limit.
    ///
    /// # Errors
    /// If it cannot start.
    pub async fn execute_within(&self, line: &str, limit: Duration) -> Result<ShellOutput> {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.run_program(&Spawn { deadline_ms: Some(limit), ..Spawn::shell(line) }).await
    }

    async fn run_program(&self, spawn: &Spawn) -> Result<ShellOutput> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let take = |stream: OutputStream, piece: &[u8]| {
            let to = match stream {
                OutputStream::Stderr => &mut stderr,
                OutputStream::Stdout => &mut stdout,
            };
            let room = OUTPUT_BYTES_MAX.saturating_sub(to.len());
            to.extend_from_slice(&piece[..piece.len().min(room)]);
        };
        let (runtime, cancel) = (self.0.jaato.runtime(), Cancel::new());
        let exit = runtime.execute(&self.0.id, spawn, None, &cancel, take).await?;
        Ok(ShellOutput {
            code: exit.code,
            timed_out: exit.timed_out,
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        })
    }
}

/// A resource of the program that must be closed: a browser, a connection.
pub trait Resource: Any + Send + Sync {
    /// Closes it. Called once. Other holders of the resource find it closed.
    ///
    /// # Errors
    /// The caller of [`ResourceRegistry::close_all`] gets the first one.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Resources by name, with their types. They close in reverse order.
#[derive(Default)]
pub struct ResourceRegistry(Mutex<Vec<NamedResource>>);

struct NamedResource {
    name: String,
    resource: Arc<dyn ErasedResource>,
}

type CloseFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

trait ErasedResource: Any + Send + Sync {
    fn close_erased(&self) -> CloseFuture<'_>;
}

impl<R: Resource> ErasedResource for R {
    fn close_erased(&self) -> CloseFuture<'_> {
        Box::pin(self.close())
    }
}

impl ResourceRegistry {
    /// Adds a resource. Returns the one that had the name before, which the caller must close.
    pub fn set<R: Resource>(&self, name: &str, resource: Arc<R>) -> Option<PreviousResource> {
        let mut all = self.0.lock();
        let before = all.iter().position(|it| it.name == name).map(|at| all.remove(at));
        all.push(NamedResource { name: name.to_owned(), resource });
        before.map(|it| PreviousResource(it.resource))
    }

    /// Returns true if there is a resource with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.lock().iter().any(|it| it.name == name)
    }

    /// Returns a resource, if it exists and has this type.
    pub fn get_typed<R: Resource>(&self, name: &str) -> Option<Arc<R>> {
        let all = self.0.lock();
        let found = Arc::clone(&all.iter().find(|it| it.name == name)?.resource);
        let found: Arc<dyn Any + Send + Sync> = found;
        found.downcast().ok()
    }

    /// Closes all resources, the last one first, and forgets them.
    ///
    /// # Errors
    /// The first error. The others are closed regardless.
    pub async fn close_all(&self) -> Result<()> {
        let mut closed = Ok(());
        loop {
            let Some(last) = self.0.lock().pop() else { return closed };
            closed = closed.and(last.resource.close_erased().await);
        }
    }
}

/// A resource whose name another one took.
pub struct PreviousResource(Arc<dyn ErasedResource>);

impl PreviousResource {
    /// Closes it.
    ///
    /// # Errors
    /// The resource's own.
    pub async fn close(self) -> Result<()> {
        self.0.close_erased().await
    }
}

fn parse_frame<T: serde::de::DeserializeOwned>(frame: &[u8]) -> Result<T> {
    Frame::read(frame).map_err(invalid_answer_error)
}

fn invalid_answer_error(error: impl std::fmt::Display) -> Error {
    let text = format!("the environment's answer is not valid: {error}");
    Error::new(ErrorKind::PluginMisbehaved, text)
}
