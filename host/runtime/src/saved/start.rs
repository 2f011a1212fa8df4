//! Connects a session that starts with its file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jaato_config::NamedModel;
use jaato_environments::{KeptOutputs, SessionOutputs};
use jaato_session::{
    EventEmitter, InitialObjects, SavedState, SessionPorts, SessionSaver, SessionSetup, SharedUsage,
};
use jaato_sessions::{SessionStore, SessionStoreError, message_blobs};
use jaato_types::{Error, SessionId};

use super::saver::SavedBaseline;
use super::{
    FileSessionSaver, LoadedSession, OpenSession, RestoredSession, SaveMode, SaveTarget,
    SaverAccess,
};
use crate::host::{RuntimeHost, SaveLocation};
use crate::start_session::SessionOptions;

/// How a session that starts is saved, and what it continues.
pub(crate) struct SessionSaving {
    pub(crate) id: SessionId,
    target: Option<SaveTarget>,
    restored: Option<RestoredSession>,
    /// The model that answers first, if the session continues.
    model: Option<String>,
    has_new_container: bool,
}

/// A saver whose session has not started yet.
pub(crate) struct StartedSaver {
    saver: FileSessionSaver,
    outputs: KeptOutputs,
    /// The background tasks of the previous process.
    ended: Vec<String>,
    has_new_container: bool,
}

impl SessionSaving {
    /// Gives a session that does not continue another one the new id.
    pub(crate) fn new(saving: SaveMode, new_id: SessionId) -> Self {
        let id = new_id.clone();
        let new = Self { id, target: None, restored: None, model: None, has_new_container: false };
        match saving {
            SaveMode::Off => new,
            SaveMode::New { store, workspace, opener } => {
                let target = SaveTarget { store, id: new_id, workspace, opener, writer: None };
                Self { target: Some(target), ..new }
            }
            SaveMode::Continue(open) => {
                let OpenSession { store, writer, restored, workspace, model, has_new_container } =
                    *open;
                let id = SessionId::new(writer.id());
                let (opener, writer) = (None, Some(writer));
                let target = SaveTarget { store, id: id.clone(), workspace, opener, writer };
                let (target, restored) = (Some(target), Some(restored));
                Self { id, target, restored, model, has_new_container }
            }
            SaveMode::Look(read) => {
                let LoadedSession { restored, model } = *read;
                Self { restored: Some(restored), model, ..new }
            }
        }
    }

    /// Returns the model that answers first in a session that continues, if it is still there.
    pub(crate) fn model(&self, host: &Arc<RuntimeHost>) -> Option<NamedModel> {
        host.model_by_name(self.model.as_deref()?).ok()
    }

    /// Puts what was saved into the setup of the session, and starts its saver.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn set_up(
        self,
        host: &Arc<RuntimeHost>,
        setup: &mut SessionSetup,
        options: &SessionOptions,
    ) -> Result<Option<StartedSaver>, Error> {
        let Self { id, target, restored, has_new_container, .. } = self;
        let Some(target) = target else {
            if let Some(restored) = restored {
                setup.history = restored.history;
                setup.interrupted = restored.interrupted;
                setup.objects = InitialObjects::Own(restored.objects);
            }
            return Ok(None);
        };
        let saved_in =
            SaveLocation { store: target.store.clone(), workspace: target.workspace.clone() };
        host.saved_in.lock().insert(id.clone(), saved_in);
        if target.opener.is_none() {
            expire_sessions(host, &target.store);
        }
        let outputs = output_keeper(host, &target);
        let is_own_workspace = is_workspace_root(host, &target.workspace);
        let mut place = session_place(host, options);
        let mut saved = SavedBaseline::default();
        if let Some(mut restored) = restored {
            restore_blobs(host, &target, &restored);
            setup.history = std::mem::take(&mut restored.history);
            setup.before_collection = restored.before_collection.take();
            setup.interrupted = std::mem::take(&mut restored.interrupted);
            setup.spent = SharedUsage::from_usage(restored.state.usage);
            if let Some(rules) = restored.rules.clone() {
                let is_same_place = is_own_workspace
                    && restored.state.environment == host.setup.config.environment
                    && restored.state.environment_options == options.environment_options;
                let mut now = setup.rules.lock();
                rules.restore_into(&mut now, is_same_place);
                now.mode = options.mode.unwrap_or(now.mode);
            }
            for (plugin, state) in &restored.plugins {
                host.plugins.instances.restore_state(&id, plugin, state.clone());
            }
            saved = SavedBaseline {
                record: restored.record,
                rules: restored.rules,
                state: restored.state,
                objects: restored.objects.change_count(),
                plugins: restored.plugins,
            };
            setup.objects = InitialObjects::Own(restored.objects);
            if !is_own_workspace {
                // The folder is one of the workspace in which the session began.
                place.folder.clone_from(&saved.state.folder);
            }
        }
        let access = saver_access(host, &id, EventEmitter::new(id.clone(), options.events.clone()));
        let (terminals, session) = (Arc::clone(&host.terminals), id.clone());
        let complete = Box::new(move |state: &mut SavedState| {
            state.background.extend(terminals.terminal_names(&session));
            state.environment.clone_from(&place.environment);
            state.environment_options.clone_from(&place.environment_options);
            state.folder.clone_from(&place.folder);
        });
        let ended = saved.state.background.clone();
        let saver = FileSessionSaver::start(target, saved, complete, access)?;
        Ok(Some(StartedSaver { saver, outputs, ended, has_new_container }))
    }
}

impl StartedSaver {
    /// Says to the model what ended with the process before, if anything did.
    pub(crate) fn ended_work_note(&self) -> Option<String> {
        let ended = self.ended.join(", ");
        let background = (!ended.is_empty()).then(|| {
            format!(
                "What ran in the background ended with the one before, and its outcome is unknown: \
                 {ended}. Start it again if it is needed."
            )
        });
        let container = self.has_new_container.then(|| {
            "The container is a new one from the same image: the workspace is the same, and \
             everything else in the container that the session changed is gone."
                .to_owned()
        });
        let notes: Vec<String> = background.into_iter().chain(container).collect();
        let begin = "The conversation continues in a new process.";
        (!notes.is_empty()).then(|| format!("{begin} {}", notes.join(" ")))
    }

    /// Lets the session and its plugins use the saver.
    pub(crate) fn connect(
        self,
        host: &Arc<RuntimeHost>,
        session: &SessionId,
        ports: &mut SessionPorts,
    ) {
        let saver = Arc::new(self.saver);
        let weak = Arc::downgrade(&saver);
        host.plugins.instances.follow_states(
            session,
            Arc::new(move |plugin, state| {
                if let Some(saver) = weak.upgrade() {
                    saver.save_plugin(plugin, state);
                }
            }),
        );
        ports.outputs = Arc::new(SessionOutputs {
            environments: Arc::clone(&host.environments),
            session: session.clone(),
            kept: Some(self.outputs),
        });
        ports.saver = Some(saver as Arc<dyn SessionSaver>);
    }
}

/// Makes whole outputs attachments of the session, without known secrets.
fn output_keeper(host: &Arc<RuntimeHost>, target: &SaveTarget) -> KeptOutputs {
    let (store, id) = (target.store.clone(), target.id.clone());
    let (services, log) = (Arc::clone(&host.services), host.log.clone());
    let keep = move |file: &Path| {
        if let Err(error) = services.mask_secrets_in_file(file, 0) {
            log.write_line(1, "host", &format!("cannot remove secrets from an output: {error}"));
            // The saver's thread tries again in the folder of unfinished outputs.
            return None;
        }
        let kept = store.attach_output(&id, file);
        kept.inspect_err(|error| {
            log.write_line(1, "host", &format!("cannot save an output: {error}"))
        })
        .ok()
    };
    KeptOutputs {
        begun_in: target.store.outputs_folder(&target.id),
        keep: Arc::new(keep),
        kept_in: target.store.attachments_folder(&target.id),
    }
}

/// Returns true if this is the root of the host's workspace.
fn is_workspace_root(host: &RuntimeHost, root: &str) -> bool {
    host.setup.workspace.root().display().to_string() == root
}

/// Returns the parts of a session's state that say where it works.
fn session_place(host: &RuntimeHost, options: &SessionOptions) -> SavedState {
    let workspace = &host.setup.workspace;
    let folder = workspace.working_directory().strip_prefix(workspace.root()).ok();
    SavedState {
        environment: host.setup.config.environment.clone(),
        environment_options: options.environment_options.clone(),
        folder: folder.map(|folder| folder.display().to_string()),
        ..SavedState::default()
    }
}

/// Deletes sessions that are older or larger than the user configured, on a thread of its own.
fn expire_sessions(host: &Arc<RuntimeHost>, store: &SessionStore) {
    let settings = &host.setup.config.sessions;
    let days = Some(settings.keep_days).filter(|days| *days > 0);
    let megabytes = Some(settings.keep_megabytes).filter(|megabytes| *megabytes > 0);
    if days.is_none() && megabytes.is_none() {
        return;
    }
    let age = days.map(|days| Duration::from_secs(days * 24 * 3600));
    let bytes = megabytes.map(|megabytes| megabytes * 1024 * 1024);
    let (store, log) = (store.clone(), host.log.clone());
    let expire = move || {
        let failures = match store.expire_sessions(age, bytes) {
            Ok(expired) => expired.failed.into_iter().map(|(_, error)| error).collect(),
            Err(error) => vec![error],
        };
        for error in failures {
            log.write_line(1, "host", &format!("cannot delete an old session: {error}"));
        }
    };
    // Without a thread, the next session tries again.
    let _ = std::thread::Builder::new().name("jaato-expire".to_owned()).spawn(expire);
}

/// Puts the blobs of the conversation back into the session's blob store. A message whose blob
/// cannot be restored says so to the model.
fn restore_blobs(host: &Arc<RuntimeHost>, target: &SaveTarget, restored: &RestoredSession) {
    let Ok(blobs) = host.services.shared_services().blobs().session_blobs(&target.id) else {
        return;
    };
    let entries = restored.record.entries().iter();
    for data in entries.flat_map(|entry| message_blobs(&entry.message)) {
        let Some(id) = data.blob_id().filter(|id| blobs.find(id).is_err()) else { continue };
        let Ok(Some(bytes)) = target.store.read_attachment(&target.id, id) else { continue };
        let stored = blobs.begin_upload(&data.mime_type).and_then(|mut upload| {
            upload.write(&bytes)?;
            upload.finish()
        });
        if let Err(error) = stored {
            host.log.write_line(1, "host", &format!("cannot restore an attachment: {error}"));
        }
    }
}

fn saver_access(host: &Arc<RuntimeHost>, id: &SessionId, emitter: EventEmitter) -> SaverAccess {
    let services = Arc::clone(&host.services);
    let (blobs, files) = (Arc::clone(&host.services), Arc::clone(&host.services));
    let id = id.clone();
    SaverAccess {
        clean: Box::new(move |text| services.without_any_secret(text)),
        clean_file: Box::new(move |path, from| files.mask_secrets_in_file(path, from)),
        read_blob: Box::new(move |blob| {
            let of_session = blobs.shared_services().blobs().session_blobs(&id).ok()?;
            of_session.read_blob_start(blob, u64::MAX).ok()
        }),
        report: Box::new(move |error| {
            emitter.emit_notice(match error {
                SessionStoreError::TakenOver { .. } => error.to_string(),
                _ => format!("{error}; the conversation continues, but nothing more is saved"),
            });
        }),
    }
}
