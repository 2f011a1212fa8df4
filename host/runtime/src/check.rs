//! A runtime of one plugin file, run in a worker whoever trusts it, to find out whether it works.

use std::path::Path;
use std::sync::Arc;

use jaato_registry::{Candidate, PluginEntry, Registry, Rules, Trust};
use jaato_session::{Cancel, Gc as _, Session};
use jaato_types::{
    Description, Error, ErrorKind, GcPlan, GcReason, GcRequest, Manifest, Message, Part,
};

use crate::discover::Discovery;
use crate::gc::PluginGc;
use crate::runtime::{Runtime, supervisor, why_not};
use crate::services::Place;
use crate::setup::Setup;
use crate::trusted::sha256_of;

/// Turns of the history that a gc is asked about.
const TURNS: usize = 6;

impl Runtime {
    /// Starts with this plugin alone. It counts as not trusted, so it runs in a worker and is given no key;
    /// its calls are in no ledger.
    ///
    /// # Errors
    /// When the file cannot be read, or its names cannot be taken.
    pub fn of_one(
        mut setup: Setup,
        file: &Path,
        manifest: Manifest,
        description: Description,
    ) -> Result<Self, Error> {
        let digest = sha256_of(file).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read `{}`: {error}", file.display()))
        })?;
        setup.config.ledger_enabled = false;
        setup.config.tools_disabled.clear();
        setup.config.gc_plugin = manifest.name.to_string();
        let candidate = Candidate {
            path: file.to_owned(),
            place: "checked",
            trust: Trust::No(digest),
            manifest,
            description: Some(Ok(description)),
        };
        let registry = Registry::build([candidate], &Rules::default());
        if let Some((why, hint)) = registry.plugins().first().and_then(why_not) {
            let error = Error::new(ErrorKind::PluginMisbehaved, why);
            return Err(hint.into_iter().fold(error, Error::with_hint));
        }
        let supervisor = supervisor(&setup);
        Ok(Self::with(setup, supervisor, Discovery { registry, ..Discovery::default() }))
    }

    /// Makes the plugin's instance for a session.
    ///
    /// # Errors
    /// When the plugin makes none, or dies of it.
    pub async fn make_instance(
        &self,
        plugin: &PluginEntry,
        session: &Session,
    ) -> Result<(), Error> {
        let place = Place { session: session.id().clone(), facts: None, call: None };
        let name = plugin.candidate.manifest.name.as_str();
        self.host().instance(name, place, Arc::new(|_| {})).await.map(drop)
    }

    /// Asks the configured gc about a short history that has filled its context; returns what it would
    /// drop, and of how many messages.
    ///
    /// # Errors
    /// When it fails, or would drop what is not there.
    pub async fn try_gc(&self, session: &Session, cancel: Cancel) -> Result<(usize, usize), Error> {
        let gc = PluginGc::new(Arc::clone(self.host()), session.id().clone());
        let turn = |number: usize| {
            let prompt = Message::user(format!("question {number}"));
            [prompt, Message::model(vec![Part::text(format!("answer {number}"))])]
        };
        let request = GcRequest {
            v: GcRequest::VERSION,
            reason: GcReason::Threshold,
            messages: (0..TURNS).flat_map(turn).collect(),
            context_limit: 1000,
            total_tokens: 950,
            settings: serde_json::json!({}),
        };
        let GcPlan { drop, .. } = gc.plan(&request, cancel).await?;
        let count = request.messages.len();
        match drop.iter().find(|&&at| at >= count) {
            None => Ok((drop.len(), count)),
            Some(at) => {
                let text = format!("its plan drops message {at} of {count}");
                Err(Error::new(ErrorKind::PluginMisbehaved, text))
            }
        }
    }
}
