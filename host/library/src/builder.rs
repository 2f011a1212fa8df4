//! The host inside this program: its configuration, plugins, tools and providers.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_plugin_sdk::__private::Module;
use jaato_runtime::config::{Config, EnvironmentVariables, UserFolders};
use jaato_runtime::loader::OpenedPlugin;
use jaato_runtime::session_loop::{Cancel, Provider};
use jaato_runtime::types::{Error, ErrorKind, ModelId, Result, ToolName, ToolSpec};
use jaato_runtime::{
    PluginFiles, ProgramParts, Runtime, SessionOptions, Setup, SetupArguments, SetupError,
    ShutdownReport,
};
use serde_json::{Map, Value};

use crate::environment::OpenEnvironment;
use crate::events::SessionEvents;
use crate::session::{SaveTarget, SessionBuilder};
use crate::tool::Tool;

/// The variables that a program without the user's configuration passes on, so that commands run.
const COMMON_VARIABLES: [&str; 8] =
    ["PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// Which configuration, keys and plugin folders of the user a host reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Configuration {
    /// None: it reads and writes no file of the user, and has only what the program gives it.
    #[default]
    None,
    /// The user's own, and the workspace's if the user trusts that workspace.
    OfUser,
    /// That in a folder, below which the host also keeps its data.
    In(PathBuf),
}

/// Prepares a [`Jaato`].
#[must_use = "`start` makes the host"]
pub struct JaatoBuilder {
    configuration: Configuration,
    workspace: Option<PathBuf>,
    executable: Option<PathBuf>,
    arguments: SetupArguments,
    variables: Vec<(String, String)>,
    parts: ProgramParts,
    changes: Vec<ConfigChange>,
    problem: Option<Error>,
}

type ConfigChange = Box<dyn FnOnce(&mut Config) + Send>;

/// A host in this process. Sessions run on it. Clones share it.
#[derive(Clone)]
pub struct Jaato(Arc<Runtime>);

impl Jaato {
    /// Prepares a host that has only what the program gives it.
    pub fn builder() -> JaatoBuilder {
        let arguments = SetupArguments { files: PluginFiles::Ignored, ..SetupArguments::default() };
        JaatoBuilder {
            configuration: Configuration::None,
            workspace: None,
            executable: None,
            arguments,
            variables: Vec::new(),
            parts: ProgramParts::default(),
            changes: Vec::new(),
            problem: None,
        }
    }

    /// Prepares a session.
    pub fn session(&self) -> SessionBuilder {
        SessionBuilder::new(self.clone(), SaveTarget::Nothing)
    }

    /// Prepares a session that continues one that [`SessionBuilder::save_in`] saved in this folder.
    pub fn resume(&self, folder: impl Into<PathBuf>, id: &str) -> SessionBuilder {
        SessionBuilder::new(self.clone(), SaveTarget::Continued(folder.into(), id.into()))
    }

    /// Sets up an execution environment, for the program's own use and to lend to sessions.
    ///
    /// # Errors
    /// If no plugin offers it, it has no such option, or it cannot be set up.
    pub async fn environment(
        &self,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<OpenEnvironment> {
        OpenEnvironment::open(self.clone(), name, options).await
    }

    /// Calls a tool for the program itself, without a model and without a permission prompt.
    ///
    /// # Errors
    /// If the tool does not exist, its arguments do not match, or it fails.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        let events = Arc::<SessionEvents>::default();
        let mut session = self.0.open_session_for_calls(SessionOptions::unattended(events))?;
        let closer = self.0.session_closer(session.id());
        let (name, cancel) = (ToolName::from(tool), Cancel::new());
        session.renew_tools(&cancel).await;
        let output = session.run_user_call(&name, arguments, &cancel).await;
        closer.close().await;
        Ok(output?.content)
    }

    /// Runs a command of a plugin for the program itself, for example `mcp` of the plugin for MCP
    /// servers. A user runs the same as `jaato command NAME`.
    ///
    /// # Errors
    /// If the command does not exist, its arguments do not match, or it fails.
    pub async fn command(&self, name: &str, arguments: Value) -> Result<Map<String, Value>> {
        let events = Arc::<SessionEvents>::default();
        let mut session = self.0.open_session_for_calls(SessionOptions::unattended(events))?;
        let closer = self.0.session_closer(session.id());
        let output = self.0.run_command(&mut session, name, arguments, &Cancel::new()).await;
        closer.close().await;
        Ok(output?.content)
    }

    /// Lists the tools of the host, including those that plugins set while they run.
    ///
    /// # Errors
    /// Only by a bug.
    pub async fn tools(&self) -> Result<Vec<ToolSpec>> {
        let events = Arc::<SessionEvents>::default();
        Ok(self.0.offered_tools(Vec::new(), events, &Cancel::new()).await?.tools)
    }

    /// Returns the problems that were found at the start, one each: broken plugin files, unknown
    /// settings. The library prints none of them.
    pub fn problems(&self) -> &[String] {
        self.0.problems()
    }

    /// Returns the runtime below, for everything that this crate does not simplify.
    pub fn runtime(&self) -> &Runtime {
        &self.0
    }

    /// Ends everything that runs on the host, and returns what could not be ended cleanly.
    pub async fn close(&self) -> ShutdownReport {
        self.0.close().await
    }
}

impl JaatoBuilder {
    /// Chooses which configuration is read. The default is none.
    pub fn configuration(mut self, configuration: Configuration) -> Self {
        self.configuration = configuration;
        self
    }

    /// Sets the working directory of sessions. The default is the program's.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Sets the model of sessions that choose none, as `provider/model`. Without one, the only
    /// provider of the program answers.
    pub fn model(mut self, model: &str) -> Self {
        self.arguments.overrides.model = Some(ModelId::from(model));
        self
    }

    /// Adds a provider of the program. Its models are `name/…`.
    pub fn provider(mut self, name: &str, provider: impl Provider + 'static) -> Self {
        self.parts.providers.insert(name.to_owned(), Arc::new(provider));
        self
    }

    /// Like [`JaatoBuilder::provider`], with a provider that the program also holds.
    pub fn shared_provider(mut self, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.parts.providers.insert(name.to_owned(), provider);
        self
    }

    /// Gives the plugin of a provider its API key. The plugin does not see it.
    pub fn key(mut self, provider: &str, key: impl Into<String>) -> Self {
        self.parts.keys.insert(provider.to_owned(), key.into());
        self
    }

    /// Sets the base URL of a provider's server.
    pub fn base_url(mut self, provider: &str, url: impl Into<String>) -> Self {
        self.parts.base_urls.insert(provider.to_owned(), url.into());
        self
    }

    /// Adds a tool of the program.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.parts.tools.push(Arc::new(tool));
        self
    }

    /// Adds a plugin that is linked into the program: `__jaato::MODULE` of a crate with
    /// `export_plugin!`. It may offer tools, a provider, a gc, an environment and hooks.
    pub fn plugin(mut self, module: Module) -> Self {
        match OpenedPlugin::from_linked(module.manifest, module.describe, module.factory) {
            Ok(plugin) => self.arguments.linked.push(plugin),
            Err(error) => {
                let error = Error::new(ErrorKind::PluginMisbehaved, error.to_string());
                self.problem.get_or_insert(error);
            }
        }
        self
    }

    /// Chooses whether plugin files are used: those next to the executable, in the folders of
    /// [`JaatoBuilder::plugin_folder`] and of the configuration. The default is not to.
    pub fn plugin_files(mut self, files: PluginFiles) -> Self {
        self.arguments.files = files;
        self
    }

    /// Adds a folder with plugin files, and uses plugin files.
    pub fn plugin_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.arguments.plugin_dirs.push(folder.into());
        self.plugin_files(PluginFiles::Searched)
    }

    /// Names an installed `jaato`, whose plugins and children this host uses, in place of this
    /// program's own executable. A name without a folder is searched on `PATH`.
    pub fn executable(mut self, path: impl Into<PathBuf>) -> Self {
        self.executable = Some(path.into());
        self.plugin_files(PluginFiles::Searched)
    }

    /// Sets an environment variable of the host, over the process's.
    pub fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Reads variables for the configuration and for plugins from this file, instead of the
    /// workspace's `.env`.
    pub fn env_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.arguments.env_file = Some(path.into());
        self
    }

    /// Changes the configuration after it was read, for example a limit of sessions.
    pub fn configure(mut self, change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Writes the ledger to a file. Without it, the configuration decides.
    pub fn ledger_file(self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.configure(move |config| {
            config.ledger.enabled = true;
            config.ledger.path = Some(path);
        })
    }

    /// Starts the host on the current tokio runtime, which needs I/O and time.
    ///
    /// # Errors
    /// If the configuration is not valid, the executable is not on `PATH`, or a part that the
    /// program gave cannot be used.
    pub async fn start(mut self) -> Result<Jaato> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        if self.arguments.overrides.model.is_none()
            && self.configuration == Configuration::None
            && let [name] = self.parts.providers.keys().collect::<Vec<_>>()[..]
        {
            self.arguments.overrides.model = Some(ModelId::new(format!("{name}/default")));
        }
        let system = |what, error: std::io::Error| setup_error(&SetupError::System(what, error));
        let directory = match self.workspace {
            Some(folder) => folder,
            None => {
                std::env::current_dir().map_err(|error| system("the working directory", error))?
            }
        };
        let executable = match self.executable {
            Some(path) => find_executable(path)?,
            None => std::env::current_exe().map_err(|error| system("the executable", error))?,
        };
        let (folders, own) = match self.configuration {
            Configuration::None => (UserFolders::without_home(), true),
            Configuration::OfUser => (UserFolders::for_user(), false),
            Configuration::In(folder) => (UserFolders::under_root(&folder), true),
        };
        let process = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            (!own || COMMON_VARIABLES.contains(&name.as_str())).then_some((name, value))
        });
        let given = self.variables.into_iter().map(|(name, value)| (name, value.into()));
        let variables: EnvironmentVariables = process.chain(given).collect();
        let mut setup =
            Setup::from_arguments(self.arguments, executable, folders, variables, &directory)
                .map_err(|error| setup_error(&error))?;
        for change in self.changes {
            change(&mut setup.config);
        }
        let runtime = Runtime::start_with(setup, self.parts).await?;
        Ok(Jaato(Arc::new(runtime)))
    }
}

/// Returns the path of an executable. Shipped plugins are next to the file itself, so links on
/// `PATH` are followed.
fn find_executable(path: PathBuf) -> Result<PathBuf> {
    if path.components().count() > 1 {
        return Ok(path);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&path))
        .find(|file| file.is_file());
    found.and_then(|file| file.canonicalize().ok()).ok_or_else(|| {
        let text = format!("there is no program `{}` on PATH", path.display());
        Error::new(ErrorKind::Configuration, text)
            .with_hint("install jaato, or give the path of its executable")
    })
}

fn setup_error(error: &SetupError) -> Error {
    let made = Error::new(ErrorKind::Configuration, error.to_string());
    error.hint().into_iter().fold(made, Error::with_hint)
}
