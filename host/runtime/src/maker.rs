//! Creates models and child sessions for services on behalf of plugins.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use jaato_catalog::registry_rules;
use jaato_config::Dollars;
use jaato_instances::{CallSite, DeltaCallback, FacetRequest, invalid_answer_error};
use jaato_services::{SessionMaker, TokenCountRequest};
use jaato_session::{
    AnsweringModel, Cancel, EventSink, History, Session, SharedSessionState, Toolbox,
};
use jaato_sessions::SessionOpener;
use jaato_types::child::ChildOpen;
use jaato_types::count::{TokenCount, TokenCountInput};
use jaato_types::tools_set::{ToolsSet, ToolsSetAnswer};
use jaato_types::{
    Error, ErrorKind, EventEnvelope, Frame, PluginName, RequestOptions, SessionId, ToolName,
};

use crate::child::ChildSessionOrigin;
use crate::host::{RuntimeHost, SaveLocation};
use crate::saved::{OpenSession, SaveMode};
use crate::start_session::SessionOptions;

/// Creates them for a host without keeping it alive.
pub struct HostSessionMaker(pub Weak<RuntimeHost>);

impl HostSessionMaker {
    fn host(&self) -> Result<Arc<RuntimeHost>, Error> {
        let over = || Error::new(ErrorKind::Unavailable, "the host has ended");
        self.0.upgrade().ok_or_else(over)
    }
}

impl SessionMaker for HostSessionMaker {
    fn answering_model(&self, name: &str, session: &SessionId) -> Result<AnsweringModel, Error> {
        let host = self.host()?;
        let named = host.model_by_name(name)?;
        let ready = host.ready_model(&named, &RequestOptions::default(), session)?;
        Ok(ready.into_answering_model())
    }

    fn token_count_request(
        &self,
        name: &str,
        asked: &TokenCountInput,
        session: &SessionId,
    ) -> Result<TokenCountRequest, Error> {
        let host = self.host()?;
        let model = host.model_by_name(name)?.model;
        let known = host.resolve_provider(&model)?;
        let (_, own_name) = model.split().unwrap_or_default();
        let request = asked
            .to_completion_request(own_name)
            .ok_or_else(|| Error::new(ErrorKind::InvalidArguments, "there is nothing to count"))?;
        let provider = known.names.map(|names| names.given);
        let site = CallSite { provider, ..host.environments.call_site(session) };
        let tokens = Box::pin(async move {
            let written = Frame::write(&request)
                .map_err(|error| Error::new(ErrorKind::LimitReached, error.to_string()))?;
            let (plugin, facet) = (known.plugin.as_str(), FacetRequest::CountTokens);
            let nobody: DeltaCallback = Arc::new(|_| {});
            let cancel = Cancel::new();
            let asked = host.plugins.call_plugin(plugin, facet, site, written, &nobody, &cancel);
            Ok(Frame::read::<TokenCount>(&asked.await?)
                .map_err(invalid_answer_error(plugin))?
                .tokens)
        });
        Ok(TokenCountRequest { model: model.to_string(), tokens })
    }

    fn open(
        &self,
        opener: &SessionId,
        lent: SharedSessionState,
        asked: &ChildOpen,
        follower: Arc<dyn EventSink>,
    ) -> Result<Session, Error> {
        self.host()?.open_child(opener, lent, asked, follower)
    }

    fn set_tools(
        &self,
        plugin: &PluginName,
        owner: Option<&SessionId>,
        set: ToolsSet,
    ) -> Result<ToolsSetAnswer, Error> {
        let host = self.host()?;
        let plugins = &host.plugins.plugins;
        let answer = plugins.set_tools(plugin, owner, set, &registry_rules(&host.setup))?;
        // A user who types the next message sees it at once.
        let news = |session: &SessionId| plugins.unseen_news(session, Some(plugin.as_str()));
        host.services.shared_services().sessions().update_news(news);
        Ok(answer)
    }

    fn close(&self, session: SessionId) -> BoxFuture<'static, ()> {
        let host = self.0.upgrade();
        Box::pin(async move {
            if let Some(host) = host {
                host.close_session(&session).await;
            }
        })
    }
}

impl RuntimeHost {
    /// Starts a session that another one opens.
    fn open_child(
        self: &Arc<Self>,
        opener: &SessionId,
        lent: SharedSessionState,
        asked: &ChildOpen,
        follower: Arc<dyn EventSink>,
    ) -> Result<Session, Error> {
        let sessions = self.services.shared_services().sessions();
        let person = sessions.events_of(opener);
        let events = Arc::new(ChildEventSink { person, follower });
        let mut options = SessionOptions::unattended(events);
        options.asker = Arc::clone(&lent.asker);
        options.system.clone_from(&asked.instructions);
        if asked.cost_max.is_some_and(|cost| Dollars::new(cost).is_none()) {
            let text = "`cost_max` is not from 0 to a billion US dollars";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        match &asked.directory {
            Some(directory) => {
                let opener = lent.gate.call_environment().directory;
                options.directory = Some(self.child_directory(opener, directory)?);
            }
            None => {
                options.environment = self.environments.shared_environment(opener);
                // In the same environment, the same rules about paths and commands apply.
                options.gate = Some(Arc::clone(&lent.gate));
            }
        }
        options.tools = Some(child_tools(&lent.tools, asked.tools.as_deref())?);
        options.saving = self.child_saving(opener, asked)?;
        let continues = matches!(options.saving, SaveMode::Continue(_));
        let own = asked.model.clone();
        // The model of a child that continues is saved with it.
        options.model = own.or_else(|| (!continues).then(|| lent.model.to_string()));
        let child = ChildSessionOrigin { opener: opener.clone(), asked: asked.clone(), lent };
        self.start_session(History::new(), options, Some(child))
    }

    /// Returns the folder that a child asks for, relative to its opener's if that is known. It is
    /// below the workspace's root.
    fn child_directory(&self, opener: Option<PathBuf>, directory: &str) -> Result<PathBuf, Error> {
        let workspace = &self.setup.workspace;
        let opener = opener.unwrap_or_else(|| workspace.working_directory().to_owned());
        let folder = opener.join(directory).canonicalize();
        let is_inside = |folder: &PathBuf| folder.starts_with(workspace.root()) && folder.is_dir();
        folder.ok().filter(is_inside).ok_or_else(|| {
            let text = format!("`{directory}` is not a folder of the workspace");
            Error::new(ErrorKind::InvalidArguments, text)
        })
    }

    /// Returns where a child is saved: where its opener is, if anywhere.
    fn child_saving(&self, opener: &SessionId, asked: &ChildOpen) -> Result<SaveMode, Error> {
        let saved_in = self.saved_in.lock().get(opener).cloned();
        let Some(SaveLocation { store, workspace }) = saved_in else {
            return asked.resume.as_ref().map_or(Ok(SaveMode::Off), |id| Err(no_such_child(id)));
        };
        let Some(resume) = &asked.resume else {
            let (session, agent) = (opener.as_str().to_owned(), asked.name.clone());
            let opener = Some(SessionOpener { session, agent });
            return Ok(SaveMode::New { store, workspace, opener });
        };
        let id = SessionId::from(resume.as_str());
        let reader = store.read_session(&id).map_err(|_| no_such_child(resume))?;
        let is_own = |it: &SessionOpener| it.session == opener.as_str();
        if !reader.header().opener.as_ref().is_some_and(is_own) {
            return Err(no_such_child(resume));
        }
        let open = OpenSession::open(store, &id, false)
            .map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))?;
        Ok(SaveMode::Continue(Box::new(open)))
    }
}

/// Returns the tools of a child: those of its opener that it asks for by name, or by the beginning
/// of a name before a `*`, or all of them.
fn child_tools(opener: &Toolbox, asked: Option<&[ToolName]>) -> Result<Vec<ToolName>, Error> {
    let all = || opener.tools().map(|tool| tool.spec.name.clone());
    let Some(asked) = asked else { return Ok(all().collect()) };
    let mut tools = Vec::new();
    for name in asked {
        match name.as_str().strip_suffix('*') {
            Some(beginning) => tools.extend(all().filter(|it| it.as_str().starts_with(beginning))),
            None => {
                opener.find_tool(name)?;
                tools.push(name.clone());
            }
        }
    }
    Ok(tools)
}

fn no_such_child(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("this session has no saved child session `{id}`"))
}

/// Shows a child's events to its opener's user and to the plugin that follows it.
struct ChildEventSink {
    person: Option<Arc<dyn EventSink>>,
    follower: Arc<dyn EventSink>,
}

impl EventSink for ChildEventSink {
    fn receive_event(&self, envelope: EventEnvelope) {
        if let Some(person) = &self.person {
            person.receive_event(envelope.clone());
        }
        self.follower.receive_event(envelope);
    }
}
