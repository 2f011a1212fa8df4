//! The state that the calls of all plugins share.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_catalog::{GrantTable, Setup};
use jaato_config::UserFolders;
use jaato_environments::{OutputFolder, ProgramRegistry};
use jaato_http::{Client, HttpClientSettings as HttpSettings, NetworkAccess};
use jaato_process::Supervisor;
use jaato_types::service::TerminalFacts;

use crate::assets::Assets;
use crate::blobs::BlobStore;
use crate::counts::CountsInWork;
use crate::facts;
use crate::http::RunningHttpRequests;
use crate::key_commands::KeyCommands;
use crate::secrets::PluginSecrets;
use crate::sessions::OpenSessions;
use crate::store::PluginStores;
use crate::web::WebClients;
use crate::workspace_trust::WorkspaceTrust;

/// The state that every call of every plugin may use.
pub struct SharedServices {
    /// The user's folders.
    pub(crate) folders: UserFolders,
    /// The grants of plugins.
    pub(crate) grants: Arc<GrantTable>,
    /// The HTTP client for requests of plugins.
    pub(crate) http: Client,
    /// The HTTP clients for their reads from the web.
    pub(crate) web: WebClients,
    /// The open sessions.
    pub(crate) sessions: OpenSessions,
    /// The running requests of plugins.
    pub(crate) requests: RunningHttpRequests,
    /// Runs the commands that print keys.
    pub(crate) key_commands: Arc<KeyCommands>,
    /// Big files, if the system reports a home directory.
    pub(crate) assets: Option<Assets>,
    /// Output files.
    pub(crate) outputs: Arc<OutputFolder>,
    /// Binary data.
    pub(crate) blobs: BlobStore,
    /// The plugins' own stores.
    pub(crate) stores: Arc<PluginStores>,
    /// Their secrets.
    pub(crate) secrets: Arc<PluginSecrets>,
    /// Running token counts.
    pub(crate) counts: CountsInWork,
    /// Programs that run for calls.
    pub(crate) processes: Arc<ProgramRegistry>,
    /// The user's terminal.
    pub(crate) terminal: TerminalFacts,
    /// The current shell.
    pub(crate) parent_process: Option<String>,
    /// The working directory.
    pub(crate) working_directory: PathBuf,
    /// The workspace, if it was trusted when the process began.
    pub(crate) workspace_trust: Option<WorkspaceTrust>,
    /// `JAATO_SESSION_ID` of the process.
    pub(crate) env_session_id: String,
    /// Maximum bytes of a tool's answer to send to a model.
    pub(crate) output_bytes_max: usize,
    /// The longest deadline that a hook may ask for.
    pub(crate) hook_deadline_ms: u64,
}

impl SharedServices {
    /// Inspects the process. Opens nothing.
    pub fn new(
        setup: &Setup,
        supervisor: &Supervisor,
        outputs: Arc<OutputFolder>,
        processes: Arc<ProgramRegistry>,
    ) -> Self {
        let network =
            if setup.config.offline { NetworkAccess::Offline } else { NetworkAccess::Online };
        let http = Client::new(HttpSettings { network, ..HttpSettings::default() });
        let web = WebClients::new(network, &setup.config.web.private_hosts);
        let key_commands = Arc::new(KeyCommands::new(supervisor.clone(), &setup.variables));
        let session_id = setup.variables.get("JAATO_SESSION_ID");
        Self {
            folders: setup.folders.clone(),
            grants: Arc::clone(&setup.grants),
            assets: Assets::new(setup, supervisor, http.clone()).ok(),
            http,
            web,
            sessions: OpenSessions::default(),
            counts: CountsInWork::default(),
            requests: RunningHttpRequests::default(),
            secrets: Arc::new(PluginSecrets::new(&setup.folders, Arc::clone(&key_commands))),
            key_commands,
            blobs: BlobStore::next_to_outputs(Arc::clone(&outputs)),
            outputs,
            processes,
            stores: Arc::new(PluginStores::new(&setup.folders, setup.workspace.root())),
            terminal: facts::read_terminal_facts(&setup.variables),
            parent_process: facts::parent_process(),
            working_directory: setup.workspace.working_directory().to_owned(),
            workspace_trust: WorkspaceTrust::from_setup(setup),
            env_session_id: session_id
                .map(|id| id.to_string_lossy().into_owned())
                .unwrap_or_default(),
            output_bytes_max: setup.config.session.output_bytes_max,
            hook_deadline_ms: setup.config.session.hook_deadline_ms,
        }
    }

    /// Returns the assets, if the system reports a home directory.
    pub fn assets(&self) -> Option<&Assets> {
        self.assets.as_ref()
    }

    /// Returns the open sessions.
    pub fn sessions(&self) -> &OpenSessions {
        &self.sessions
    }

    /// Returns the blobs.
    pub fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// Returns the programs that run for calls.
    pub fn processes(&self) -> &ProgramRegistry {
        &self.processes
    }
}
