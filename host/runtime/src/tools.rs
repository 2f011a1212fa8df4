//! The tools of the plugins as the session sees them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_loader::RunningCall;
use jaato_registry::{ToolEntry, ToolStatus};
use jaato_session::{CallScope, Cancel, KnownTool, ToolSet, ToolState};
use jaato_types::{Availability, Delta, Error, ErrorKind, Frame, Output, ToolCall};

use crate::runtime::Host;
use crate::services::{Place, Tell};

/// The tools of one session.
pub struct PluginTools {
    host: Arc<Host>,
    /// Whether the session has a model: only then `context` and `session` facts are there.
    has_model: bool,
}

impl PluginTools {
    /// Makes them for a session.
    pub fn new(host: Arc<Host>, has_model: bool) -> Self {
        Self { host, has_model }
    }

    async fn run(
        host: Arc<Host>,
        has_model: bool,
        call: ToolCall,
        scope: CallScope,
    ) -> Result<Output, Error> {
        let Some(tool) = host.registry.tool(call.name.as_str()) else {
            return Err(Error::new(ErrorKind::UnknownTool, format!("no tool `{}`", call.name)));
        };
        let sink = scope.output.clone();
        let tell: Tell = Arc::new(move |delta| {
            sink.delta(delta);
        });
        let place = Place {
            session: scope.session.clone(),
            facts: has_model.then(|| scope.facts.clone()),
            call: Some(scope.call.clone()),
        };
        let (instance, services) =
            host.instance(tool.plugin.as_str(), place, Arc::clone(&tell)).await?;
        let frame = Frame::write(&call.arguments)
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let running = instance.call_tool(call.name.as_str(), frame, services)?;
        let answer = drive(running, &scope.cancel, |delta| tell(delta)).await;
        if !tool.spec.annotations.read_only {
            host.save(tool.plugin, &scope.session, &instance).await;
        }
        let answer = answer?;
        let parsed = Frame::parse(&answer).map_err(misbehaved)?;
        Ok(Output { content: parsed.json().map_err(misbehaved)?, bytes: parsed.bytes.to_vec() })
    }
}

impl ToolSet for PluginTools {
    fn tools(&self) -> Vec<KnownTool> {
        self.host.registry.tools().map(known).collect()
    }

    fn call(&self, call: ToolCall, scope: CallScope) -> BoxFuture<'static, Result<Output, Error>> {
        Box::pin(Self::run(Arc::clone(&self.host), self.has_model, call, scope))
    }
}

fn known(tool: ToolEntry<'_>) -> KnownTool {
    let state = match (tool.status, tool.spec.availability) {
        (ToolStatus::Enabled, Availability::Core) => ToolState::Active,
        (ToolStatus::Enabled, Availability::Discoverable) => ToolState::Inactive,
        (ToolStatus::Disabled, _) => ToolState::Disabled { by: "by `[tools] disabled`".into() },
        (ToolStatus::NotEnabled, _) => ToolState::Disabled {
            by: "because `[tools] enabled` or `--tools` does not name it".into(),
        },
    };
    KnownTool {
        spec: tool.spec.clone(),
        plugin: tool.plugin.clone(),
        shipped: tool.is_shipped,
        state,
    }
}

/// Reads what a call emits until its answer is there. A cancel ends it at once.
pub(crate) async fn drive(
    mut running: RunningCall,
    cancel: &Cancel,
    mut take: impl FnMut(Delta),
) -> Result<Vec<u8>, Error> {
    let work = async {
        while let Some(emission) = running.next_emission().await {
            match Frame::read::<Delta>(&emission) {
                Ok(delta) => take(delta),
                Err(error) => return Err(misbehaved(error)),
            }
        }
        running.answer().await
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::cancelled()),
        answer = work => answer,
    }
}

pub(crate) fn misbehaved(error: jaato_types::FrameError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, format!("the plugin's answer is wrong: {error}"))
}
