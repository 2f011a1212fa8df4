//! What the host lends to plugins by name: session facts, configuration, assets, folders, output
//! files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use jaato_config::Folders;
use jaato_loader::{Caller, CallerKind, Served, Services};
use jaato_session::{CallScope, SharedFacts};
use jaato_types::http::HTTP_REQUEST;
use jaato_types::service::{
    ASSET, AssetAnswer, AssetRequest, CACHE_FOLDER, CONFIG, FolderAnswer, OUTPUT, OutputAnswer,
    OutputWrite, SESSION, SessionFacts, TerminalFacts,
};
use jaato_types::{
    Asset, CallId, Delta, Error, ErrorKind, Frame, FrameError, PluginName, SessionId,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::assets::{Assets, delta_of};
use crate::credentials::Credentials;
use crate::environments::{
    Asker, Asking, KeptOutput, Making, Member, Resources, is_operation, is_resource_operation,
};
use crate::host::Host;
use crate::http;
use crate::instances::WeakLease;
use crate::objects::CallObjects;
use crate::outputs::Outputs;
use crate::processes::{CallProcesses, Processes};
use crate::terminals::{self, TerminalServices};

/// What every call of every plugin may use.
pub struct Lent {
    /// The user's folders.
    pub folders: Folders,
    /// The one HTTP client: what plugins ask for goes through it.
    pub http: jaato_http::Client,
    /// The requests of plugins that go on.
    pub requests: http::Requests,
    /// Big files, where the system names a home.
    pub assets: Option<Assets>,
    /// Output files.
    pub outputs: Arc<Outputs>,
    /// Programs that run for calls.
    pub processes: Arc<Processes>,
    /// The person's terminal.
    pub terminal: TerminalFacts,
    /// The current shell.
    pub parent_process: Option<String>,
    /// The working directory.
    pub working_directory: PathBuf,
    /// `JAATO_SESSION_ID` of the process.
    pub env_session_id: String,
}

/// Where a call stands in a session.
#[derive(Clone)]
pub struct Place {
    /// The session; empty for a call typed by a person.
    pub session: SessionId,
    /// Model and tokens, where the session has a model.
    pub facts: Option<SharedFacts>,
    /// The call, where it is a tool's.
    pub call: Option<CallId>,
    /// The session's objects, where a tool or a command runs.
    pub objects: Option<CallObjects>,
    /// The session's execution environment.
    pub environment: Option<SessionEnvironment>,
    /// The resource that is made by this, where one is.
    pub making: Option<Making>,
    /// Hears of each piece of an answer from the network, where a provider answers a request.
    pub alive: Option<Alive>,
}

/// The execution environment of a session, as its plugins reach it.
#[derive(Clone)]
pub struct SessionEnvironment {
    host: Weak<Host>,
    /// None for the environment's own plugin.
    member: Option<Arc<Member>>,
    resources: Arc<Resources>,
}

impl Place {
    /// A call that belongs to no session.
    pub fn of_nobody() -> Self {
        Self::of_environment(SessionId::from(""))
    }

    /// Where a tool or a command stands in its session while it is not called.
    pub fn of_tool(host: &Arc<Host>, has_model: bool, name: &str, scope: &CallScope) -> Self {
        let objects = CallObjects { shared: scope.objects.clone(), tool: name.to_owned() };
        Self {
            facts: has_model.then(|| scope.facts.clone()),
            objects: Some(objects),
            ..Self::of_session(host, &scope.session)
        }
    }

    /// Where a call for a session stands that is no tool's: a provider's, a gc's.
    pub fn of_session(host: &Arc<Host>, session: &SessionId) -> Self {
        let environment = SessionEnvironment::of(host, session);
        Self { environment, ..Self::of_environment(session.clone()) }
    }

    /// Returns the tool or command that runs, where one does.
    pub fn running(&self) -> Option<&str> {
        self.objects.as_ref().map(|objects| objects.tool.as_str())
    }

    /// A call of an environment's own plugin: the environment's id stands in for a session.
    pub fn of_environment(id: SessionId) -> Self {
        Self {
            session: id,
            facts: None,
            call: None,
            objects: None,
            environment: None,
            making: None,
            alive: None,
        }
    }
}

/// Tells whoever follows a call.
pub fn teller(scope: &CallScope) -> Tell {
    let sink = scope.output.clone();
    Arc::new(move |delta| {
        sink.delta(delta);
    })
}

impl SessionEnvironment {
    /// Returns that of a session, where it has one.
    pub fn of(host: &Arc<Host>, session: &SessionId) -> Option<Self> {
        let member = host.environments.of(session)?;
        let resources = Arc::clone(member.scope().resources());
        Some(Self { host: Arc::downgrade(host), member: Some(member), resources })
    }

    /// Returns the session in it, while the host lives.
    fn reached(&self) -> Option<(Arc<Host>, Arc<Member>)> {
        Some((self.host.upgrade()?, self.member.clone()?))
    }

    /// Returns what the environment's own plugin has of it: its resources.
    pub(crate) fn own(host: &Arc<Host>, resources: &Arc<Resources>) -> Self {
        Self { host: Arc::downgrade(host), member: None, resources: Arc::clone(resources) }
    }
}

/// Takes what a service tells while it works: shown where the call is shown.
pub type Tell = Arc<dyn Fn(Delta) + Send + Sync>;

/// Hears that bytes came from the network, whatever they say.
pub type Alive = Arc<dyn Fn() + Send + Sync>;

/// The services of one plugin, for one call or one instance.
pub struct PluginServices {
    lent: Arc<Lent>,
    plugin: PluginName,
    /// `[plugins.NAME]`, checked.
    config: Arc<Value>,
    /// What the plugin declares.
    assets: Arc<[Asset]>,
    /// Its secrets, and where they may go.
    credentials: Arc<Credentials>,
    /// Programs of this machine: an execution environment's alone.
    processes: Option<CallProcesses>,
    place: Place,
    /// The tools to whose objects it is kept, where it is not trusted.
    own_tools: Option<Arc<[String]>>,
    tell: Tell,
    output: Arc<Mutex<Option<KeptOutput>>>,
    /// The instance that asks, once it is known.
    asker: Asker,
}

impl PluginServices {
    /// Makes the services for a call.
    pub fn new(
        lent: Arc<Lent>,
        plugin: PluginName,
        config: Arc<Value>,
        assets: Arc<[Asset]>,
        place: Place,
        tell: Tell,
    ) -> Self {
        let (credentials, output, processes) = (Arc::default(), Arc::default(), None);
        let asker = Arc::new(OnceLock::new());
        let own_tools = None;
        Self {
            lent,
            plugin,
            config,
            assets,
            credentials,
            processes,
            place,
            own_tools,
            tell,
            output,
            asker,
        }
    }

    /// Says which instance asks: the one that runs the call, and that was made with these services.
    pub fn bind(&self, lease: WeakLease) {
        // There is but one.
        let _ = self.asker.set(lease);
    }

    /// Adds the plugin's credentials.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<Credentials>) -> Self {
        Self { credentials, ..self }
    }

    /// Keeps a plugin that is not trusted to the objects of these tools, its own.
    #[must_use]
    pub fn kept_to(self, own_tools: Arc<[String]>) -> Self {
        Self { own_tools: Some(own_tools), ..self }
    }

    /// Lends programs of this machine, to an execution environment.
    #[must_use]
    pub fn with_processes(self) -> Self {
        let processes = Arc::clone(&self.lent.processes);
        let processes = CallProcesses::new(processes, self.place.session.clone());
        Self { processes: Some(processes), ..self }
    }

    /// Returns what programs get of the host's variables.
    pub fn program_variables(&self) -> Arc<BTreeMap<OsString, OsString>> {
        self.lent.processes.variables()
    }

    /// Tells whoever follows the call one line.
    pub fn notice(&self, text: String) {
        (self.tell)(Delta::Notice { text });
    }

    /// Makes the services for the instance itself: the same, with nobody to tell.
    pub fn for_instance(&self) -> Arc<dyn Services> {
        Arc::new(Self {
            lent: Arc::clone(&self.lent),
            plugin: self.plugin.clone(),
            config: Arc::clone(&self.config),
            assets: Arc::clone(&self.assets),
            credentials: Arc::clone(&self.credentials),
            processes: self.processes.as_ref().map(CallProcesses::for_instance),
            place: Place {
                call: None,
                objects: None,
                making: None,
                alive: None,
                ..self.place.clone()
            },
            own_tools: self.own_tools.clone(),
            tell: Arc::new(|_| {}),
            output: Arc::default(),
            asker: Arc::clone(&self.asker),
        })
    }

    fn session(&self) -> SessionFacts {
        let lent = &self.lent;
        let has_session = self.place.facts.is_some();
        let agent = |text: &str| if has_session { text.to_owned() } else { String::new() };
        SessionFacts {
            session_id: agent(self.place.session.as_str()),
            agent_id: agent("main"),
            agent_type: agent("main"),
            agent_name: String::new(),
            env_session_id: lent.env_session_id.clone(),
            context: self.place.facts.as_ref().map(SharedFacts::read),
            working_directory: lent.working_directory.display().to_string(),
            terminal: lent.terminal.clone(),
            parent_process: lent.parent_process.clone(),
        }
    }

    fn asset(&self, request: AssetRequest) -> BoxFuture<'static, Result<Served, Error>> {
        let (lent, declared, tell) =
            (Arc::clone(&self.lent), Arc::clone(&self.assets), Arc::clone(&self.tell));
        Box::pin(async move {
            let assets = lent.assets.as_ref().ok_or_else(no_home)?;
            let report: jaato_assets::Report = Arc::new(move |event| tell(delta_of(&event)));
            let found = assets.get(&request.id, &declared, &report).await?;
            let path = found.path.display().to_string();
            frame(&AssetAnswer { path, sha256: found.sha256 })
        })
    }

    fn cache_folder(&self) -> Result<Served, Error> {
        let cache = self.lent.folders.cache().map_err(|_| no_home())?;
        let folder = cache.join("plugins").join(self.plugin.as_str());
        jaato_places::make(&folder).map_err(|error| {
            let made = Error::new(ErrorKind::Io, error.to_string());
            error.hint().into_iter().fold(made, Error::with_hint)
        })?;
        frame(&FolderAnswer { path: folder.display().to_string() })
    }

    fn objects(&self, operation: &str, request: &[u8]) -> Result<Served, Error> {
        let Some(objects) = &self.place.objects else {
            let text = "only tools and commands reach the session's objects";
            return Err(Error::new(ErrorKind::Unavailable, text));
        };
        objects.call(&self.plugin, self.own_tools.as_deref(), operation, request)
    }

    fn environment(
        &self,
        operation: &str,
        request: Vec<u8>,
    ) -> BoxFuture<'static, Result<Served, Error>> {
        let Some(SessionEnvironment { host, member: Some(member), .. }) = &self.place.environment
        else {
            let text = "there is no execution environment to run it in";
            return ready(Err(Error::new(ErrorKind::UnknownOperation, text).with_hint(
                "only sessions have one; `jaato environment list` tells which there are",
            )));
        };
        let Some(host) = host.upgrade() else {
            return ready(Err(Error::new(ErrorKind::Unavailable, "the host has ended")));
        };
        if terminals::is_operation(operation) {
            let (member, plugin) = (Arc::clone(member), self.plugin.clone());
            let session = self.place.session.clone();
            let services = TerminalServices { host, member, plugin, session };
            return services.call(operation, request);
        }
        member.call(host, &self.plugin, operation, request, Arc::clone(&self.tell))
    }

    fn resources(
        &self,
        operation: &str,
        request: Vec<u8>,
    ) -> BoxFuture<'static, Result<Served, Error>> {
        let Some(SessionEnvironment { host, resources, .. }) = &self.place.environment else {
            let text = "there is no execution environment to keep resources in";
            return ready(Err(Error::new(ErrorKind::Unavailable, text).with_hint(
                "only sessions have one; `jaato environment list` tells which there are",
            )));
        };
        let Some(host) = host.upgrade() else {
            return ready(Err(Error::new(ErrorKind::Unavailable, "the host has ended")));
        };
        let asking = Asking {
            host,
            resources: Arc::clone(resources),
            plugin: Some(self.plugin.clone()),
            session: self.place.session.clone(),
            asker: Arc::clone(&self.asker),
            making: self.place.making.clone(),
            tell: Arc::clone(&self.tell),
        };
        let operation = operation.to_owned();
        Box::pin(async move { asking.answer(&operation, &request).await })
    }

    fn output(&self, request: &[u8]) -> BoxFuture<'static, Result<Served, Error>> {
        let parsed = Frame::parse(request).map_err(bad_request).and_then(|parsed| {
            let write: Option<OutputWrite> = parsed.json().map_err(bad_request)?;
            Ok((write.unwrap_or_default(), parsed.bytes.to_vec()))
        });
        let Some(call) = self.place.call.clone() else {
            let text = "only a tool call has an output";
            return ready(Err(Error::new(ErrorKind::Unavailable, text)));
        };
        let (output, lent, tell) =
            (Arc::clone(&self.output), Arc::clone(&self.lent), Arc::clone(&self.tell));
        let environment = self.place.environment.as_ref().and_then(SessionEnvironment::reached);
        Box::pin(async move {
            let (write, bytes) = parsed?;
            if write.live && !bytes.is_empty() {
                tell(Delta::Output { text: String::from_utf8_lossy(&bytes).into_owned() });
            }
            let mut output = output.lock().await;
            if output.is_none() {
                let name = format!("{call}-output.txt");
                *output = Some(KeptOutput::create(&lent.outputs, environment, &name, tell).await?);
            }
            let Some(output) = output.as_mut() else { unreachable!("made above") };
            output.write(&bytes).await?;
            frame(&OutputAnswer { path: output.path(), bytes: output.bytes() })
        })
    }
}

impl Services for PluginServices {
    fn call(
        &self,
        caller: Caller,
        operation: &str,
        request: Vec<u8>,
    ) -> BoxFuture<'static, Result<Served, Error>> {
        match operation {
            SESSION => ready(frame(&self.session())),
            CONFIG => ready(frame(&*self.config)),
            CACHE_FOLDER => ready(self.cache_folder()),
            ASSET => match Frame::read(&request).map_err(bad_request) {
                Ok(request) => self.asset(request),
                Err(error) => ready(Err(error)),
            },
            HTTP_REQUEST => {
                let lent = (&self.lent.http, &self.lent.requests);
                let alive = self.place.alive.clone();
                http::request(lent, &self.plugin, &self.credentials, &request, alive)
            }
            OUTPUT if caller.kind == CallerKind::Call => self.output(&request),
            other if jaato_objects::service::is_operation(other) => {
                ready(self.objects(other, &request))
            }
            other if is_resource_operation(other) => self.resources(other, request),
            other => match &self.processes {
                Some(processes) => {
                    processes.call(other, &request).unwrap_or_else(|| ready(Err(unknown(other))))
                }
                None if is_operation(other) => self.environment(other, request),
                None => ready(Err(unknown(other))),
            },
        }
    }
}

fn ready(served: Result<Served, Error>) -> BoxFuture<'static, Result<Served, Error>> {
    Box::pin(std::future::ready(served))
}

fn frame<T: Serialize + ?Sized>(value: &T) -> Result<Served, Error> {
    let written = Frame::write(value);
    written.map(Served::Frame).map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))
}

fn bad_request(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

fn unknown(operation: &str) -> Error {
    let text = format!("this host has no service `{operation}`");
    Error::new(ErrorKind::UnknownOperation, text)
}

fn no_home() -> Error {
    let text = "the system does not say where the user's home is, so there is no cache";
    Error::new(ErrorKind::Unavailable, text)
        .with_hint("set HOME, or XDG_CACHE_HOME and XDG_DATA_HOME")
}
