//! The tools of the plugins as the session sees them.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_loader::{Bytes, RunningCall};
use jaato_registry::{ToolEntry, ToolStatus};
use jaato_session::{CallScope, Cancel, KnownTool, Renewal, ToolSet, ToolState};
use jaato_types::execution::EnvironmentPart;
use jaato_types::{
    Availability, CONDITION, ConditionAnswer, ConditionRequest, Delta, Error, ErrorKind, Frame,
    Output, PluginName, SessionId, ToolCall,
};

use crate::host::Host;
use crate::instances::Lease;
use crate::services::{Place, teller};

/// The tools of one session.
pub struct PluginTools {
    host: Arc<Host>,
    session: SessionId,
    /// Whether the session has a model: only then `context` and `session` facts are there.
    has_model: bool,
}

impl PluginTools {
    /// Makes them for a session, with the plugins as they are known at this moment.
    pub fn new(host: Arc<Host>, session: SessionId, has_model: bool) -> Self {
        host.plugins.open_view(&session);
        Self { host, session, has_model }
    }

    async fn run(
        host: Arc<Host>,
        has_model: bool,
        call: ToolCall,
        scope: CallScope,
    ) -> Result<Output, Error> {
        let offer = host.plugins.offer(&scope.session);
        let Some(offered) = offer.tool(call.name.as_str()) else {
            return Err(Error::new(ErrorKind::UnknownTool, format!("no tool `{}`", call.name)));
        };
        let tell = teller(&scope);
        let call_id = Some(scope.call.clone());
        let place =
            Place { call: call_id, ..Place::of_tool(&host, has_model, call.name.as_str(), &scope) };
        let plugin = offered.plugin.as_str();
        let (instance, services) = host.instance(plugin, place, Arc::clone(&tell)).await?;
        host.tell_news(&scope.session, plugin, &tell);
        check_offer(offered, &instance)?;
        let frame = Frame::write(&call.arguments)
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let running = instance.call_tool(call.name.as_str(), frame, services)?;
        let answer = drive(running, &scope.cancel, |delta| tell(delta)).await;
        if !offered.spec.annotations.read_only {
            host.save(&instance, &tell).await;
        }
        let answer = answer.map_err(|error| host.without_secrets(plugin, error))?;
        let parsed = Frame::parse(&answer).map_err(misbehaved)?;
        Ok(Output { content: parsed.json().map_err(misbehaved)?, bytes: parsed.bytes.to_vec() })
    }
}

/// Asks a tool's plugin whether a condition holds. What it changed by that is not saved: it is a
/// question.
async fn ask(
    host: Arc<Host>,
    has_model: bool,
    request: ConditionRequest,
    scope: CallScope,
) -> Result<ConditionAnswer, Error> {
    let offer = host.plugins.offer(&scope.session);
    let Some(offered) = offer.tool(request.tool.as_str()) else {
        return Err(Error::new(ErrorKind::UnknownTool, format!("no tool `{}`", request.tool)));
    };
    let place = Place::of_tool(&host, has_model, request.tool.as_str(), &scope);
    let plugin = offered.plugin.as_str();
    let (instance, services) = host.instance(plugin, place, teller(&scope)).await?;
    let frame = Frame::write(&request).map_err(misbehaved)?;
    let running = instance.operation(CONDITION, frame, services)?;
    let answer = drive(running, &scope.cancel, |_| {}).await;
    let answer = answer.map_err(|error| host.without_secrets(plugin, error))?;
    Frame::read(&answer).map_err(misbehaved)
}

/// The gate and the schema judged the call by what was offered: nothing else is called.
fn check_offer(offered: ToolEntry<'_>, instance: &Lease) -> Result<(), Error> {
    let name = offered.spec.name.as_str();
    let is_it = |has: ToolEntry<'_>| {
        // Most often it is the very same: schemas may be large.
        std::ptr::eq(has.spec, offered.spec)
            || (has.spec == offered.spec && has.is_shipped == offered.is_shipped)
    };
    if instance.catalog().registry.tool(name).is_some_and(is_it) {
        return Ok(());
    }
    let text = format!(
        "the tool `{name}` is not what was offered: plugin `{}` was replaced",
        offered.plugin
    );
    Err(Error::new(ErrorKind::Unavailable, text).with_hint("the next turn offers what is there"))
}

impl ToolSet for PluginTools {
    fn tools(&self) -> Vec<KnownTool> {
        self.host.plugins.offer(&self.session).entries().map(known).collect()
    }

    fn renew(&self) -> BoxFuture<'_, Renewal> {
        Box::pin(async {
            let (host, session) = (&self.host, &self.session);
            host.plugins.look(host.eyes()).await;
            let is_live = |plugin: &PluginName| host.instances.is_live(plugin, session);
            let is_new = host.plugins.turn(session, is_live);
            let tools = is_new.then(|| self.tools());
            Renewal { tools, notices: host.plugins.news(session, None) }
        })
    }

    fn call(&self, call: ToolCall, scope: CallScope) -> BoxFuture<'static, Result<Output, Error>> {
        Box::pin(Self::run(Arc::clone(&self.host), self.has_model, call, scope))
    }

    fn environment_has(&self, part: EnvironmentPart) -> bool {
        let member = self.host.environments.of(&self.session);
        member.is_some_and(|member| member.scope().has(&self.host, part))
    }

    fn condition(
        &self,
        request: ConditionRequest,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<ConditionAnswer, Error>> {
        Box::pin(ask(Arc::clone(&self.host), self.has_model, request, scope))
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
    running: RunningCall,
    cancel: &Cancel,
    take: impl FnMut(Delta),
) -> Result<Vec<u8>, Error> {
    drive_lending(running, cancel, take).await.map(|(frame, _)| frame.into_vec())
}

/// Does the same, and gives the open file beside the answer, where a plugin in a worker lends one.
pub(crate) async fn drive_lending(
    mut running: RunningCall,
    cancel: &Cancel,
    mut take: impl FnMut(Delta),
) -> Result<(Bytes, Option<OwnedFd>), Error> {
    let work = async {
        while let Some(emission) = running.next_emission().await {
            match Frame::read::<Delta>(&emission) {
                Ok(delta) => take(delta),
                Err(error) => return Err(misbehaved(error)),
            }
        }
        running.answer_lending().await
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
