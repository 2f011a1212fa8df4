//! The plugins' tools as the session sees them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::future::BoxFuture;
use jaato_instances::{
    CallAttachments, CallSite, FacetRequest, InstanceLease, StateEffect, delta_callback,
    invalid_answer_error, misbehaved_error,
};
use jaato_policy::AllowedTool;
use jaato_registry::{ToolEntry, ToolStatus, matches_tool};
use jaato_session::{
    CallScope, KnownTool, LIST_TOOLS, RenewalMoment, ToolRenewal, ToolSet, ToolState, WantedTools,
};
use jaato_types::execution::EnvironmentPart;
use jaato_types::hooks::{Preview, PreviewRequest};
use jaato_types::tools_set::ToolSource;
use jaato_types::{
    Availability, ConditionAnswer, ConditionRequest, Error, ErrorKind, Frame, Output, SessionId,
    ToolCall, ToolName,
};

use crate::core_tools::CoreBudget;
use crate::host::RuntimeHost;
use crate::plugin_openings::PluginOpenings;

/// The tools of one session.
pub struct PluginTools {
    host: Arc<RuntimeHost>,
    session: SessionId,
    /// Whether the session has a model. Only then do `context` and `session` facts exist.
    has_model: bool,
    /// The tools of the session. `None` if it has every tool.
    only: Option<Vec<AllowedTool>>,
    /// Whether all of them are offered from the start.
    offers_all: bool,
    core: CoreBudget,
    openings: PluginOpenings,
    /// Number of tools in the last notice about tools that do not fit.
    told_without_room: AtomicUsize,
}

impl PluginTools {
    /// Creates a session's tools from the current state of the plugins.
    pub fn new(host: Arc<RuntimeHost>, session: SessionId, has_model: bool) -> Self {
        host.plugins.plugins.open_view(&session);
        let openings = PluginOpenings::begin(&host, &session, has_model);
        let (only, core, told_without_room) = (None, CoreBudget::ALL, AtomicUsize::new(0));
        let offers_all = false;
        Self { host, session, has_model, only, offers_all, core, openings, told_without_room }
    }

    /// Restricts the session to some tools and offers all of them from the start.
    #[must_use]
    pub fn restricted_to(self, only: Option<Vec<ToolName>>) -> Self {
        Self { offers_all: true, ..self.limited_to(only) }
    }

    /// Limits the session to some tools. The model finds those that are not core tools on demand.
    #[must_use]
    pub fn limited_to(self, only: Option<Vec<ToolName>>) -> Self {
        let parse = |it: ToolName| AllowedTool::parse(it.as_str());
        Self { only: only.map(|only| only.into_iter().map(parse).collect()), ..self }
    }

    /// Checks that each of the tools to which the session is restricted exists. A pattern may match
    /// none, because plugins may set tools later.
    ///
    /// # Errors
    /// Names the first tool that does not exist.
    pub fn check_restriction(&self) -> Result<(), Error> {
        let Some(only) = &self.only else { return Ok(()) };
        let tools = self.tools();
        let is_missing = |it: &&AllowedTool| {
            !it.tool.as_str().ends_with('*') && !tools.iter().any(|tool| tool.spec.name == it.tool)
        };
        let Some(missing) = only.iter().find(is_missing) else { return Ok(()) };
        let text = format!("there is no tool `{}`", missing.tool);
        let hint = "a pattern such as `mcp_*` also selects tools that plugins set later";
        Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
    }

    /// Limits the cost of the core tools. The model finds tools that do not fit on demand.
    #[must_use]
    pub fn with_core_budget(self, core: CoreBudget) -> Self {
        Self { core, ..self }
    }

    /// Returns a notice about the tools that plugins have set but that do not fit into requests, if
    /// their number has changed.
    fn unfitting_tools_notice(&self) -> Option<String> {
        let offer = self.host.plugins.plugins.session_offer(&self.session);
        let first = &self.host.setup.config.tools_first;
        let core = self.core.fitting_tools(offer.entries(), &self.host.registry(), first);
        let is_left_out = |tool: &ToolEntry<'_>| {
            let wants = tool.is_set && tool.spec.availability == Availability::Core;
            wants && tool.status == ToolStatus::Enabled && !core.contains(&tool.spec.name)
        };
        let count = offer.entries().filter(is_left_out).count();
        let told = self.told_without_room.swap(count, Relaxed);
        (count > 0 && count != told && self.has_model && self.core.named.is_empty()).then(|| {
            let most = self.core.tokens_max;
            format!(
                "{count} core tools do not fit into the requests, which have {most} tokens for \
                 tools (`tools.core_tokens_max`); the model can find them with `{LIST_TOOLS}`"
            )
        })
    }

    /// Returns the names of the tools in requests from the start.
    pub fn active_tools(&self) -> BTreeSet<ToolName> {
        let active = self.tools().into_iter().filter(|tool| tool.state == ToolState::Active);
        active.map(|tool| tool.spec.name).collect()
    }

    async fn run_tool_call(
        host: Arc<RuntimeHost>,
        has_model: bool,
        call: ToolCall,
        scope: CallScope,
    ) -> Result<Output, Error> {
        if let Some(tool) = host.program.tool(call.name.as_str()) {
            return tool.call(call, scope).await;
        }
        let offer = host.plugins.plugins.session_offer(&scope.session);
        let Some(offered) = offer.tool(call.name.as_str()) else {
            return Err(Error::new(ErrorKind::UnknownTool, format!("no tool `{}`", call.name)));
        };
        let tell = delta_callback(&scope);
        let name = call.name.as_str();
        let site = host.tool_call_site(has_model, name, &scope);
        let attachments = CallAttachments::default();
        let site = CallSite {
            call: Some(scope.call.clone()),
            streamed: scope.streamed.clone(),
            attachments: Some(Arc::clone(&attachments)),
            ..site
        };
        let is_reading = offered.spec.annotations.read_only;
        let effect = if is_reading { StateEffect::Reads } else { StateEffect::Changes };
        let facet = FacetRequest::Tool(name, effect);
        let reached =
            host.plugins.prepare_call(offered.plugin.as_str(), facet, site, &tell).await?;
        check_offer(offered, reached.lease())?;
        let frame = Frame::write(&call.arguments)
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let answer = reached.ask(frame, &scope.cancel).await?;
        let wrong = invalid_answer_error(offered.plugin.as_str());
        let parsed = Frame::parse(&answer).map_err(&wrong)?;
        let attachments = std::mem::take(&mut *attachments.lock());
        Ok(Output {
            content: parsed.json().map_err(&wrong)?,
            bytes: parsed.bytes.to_vec(),
            attachments,
        })
    }
}

/// Asks a tool's plugin whether a condition holds. Does not save the instance afterwards, because
/// this is only a question.
async fn ask_condition(
    host: Arc<RuntimeHost>,
    has_model: bool,
    request: ConditionRequest,
    scope: CallScope,
) -> Result<ConditionAnswer, Error> {
    let offer = host.plugins.plugins.session_offer(&scope.session);
    let Some(offered) = offer.tool(request.tool.as_str()) else {
        return Err(Error::new(ErrorKind::UnknownTool, format!("no tool `{}`", request.tool)));
    };
    let registry = host.registry();
    let entry = registry.plugin(offered.plugin.as_str());
    if entry.is_some_and(|entry| !host.services.has_work(entry)) {
        return Ok(ConditionAnswer::no());
    }
    let site = host.tool_call_site(has_model, request.tool.as_str(), &scope);
    let (plugin, frame) =
        (offered.plugin.as_str(), Frame::write(&request).map_err(misbehaved_error)?);
    let (facet, tell) = (FacetRequest::Condition, delta_callback(&scope));
    let answer = host.plugins.call_plugin(plugin, facet, site, frame, &tell, &scope.cancel).await?;
    Frame::read(&answer).map_err(invalid_answer_error(plugin))
}

/// Asks a tool's plugin what a call would change.
async fn request_preview(
    host: Arc<RuntimeHost>,
    has_model: bool,
    request: PreviewRequest,
    scope: CallScope,
) -> Result<Preview, Error> {
    let offer = host.plugins.plugins.session_offer(&scope.session);
    let Some(offered) = offer.tool(request.tool.as_str()) else {
        return Err(Error::new(ErrorKind::UnknownTool, format!("no tool `{}`", request.tool)));
    };
    let site = host.tool_call_site(has_model, request.tool.as_str(), &scope).read_only();
    let (plugin, frame) =
        (offered.plugin.as_str(), Frame::write(&request).map_err(misbehaved_error)?);
    let (facet, tell) = (FacetRequest::Preview, delta_callback(&scope));
    let reached = host.plugins.prepare_call(plugin, facet, site, &tell).await?;
    check_offer(offered, reached.lease())?;
    let answer = reached.ask(frame, &scope.cancel).await?;
    Frame::read(&answer).map_err(invalid_answer_error(plugin))
}

/// Checks that the instance still has the offered tool, because permission check and schema check
/// used the offer.
fn check_offer(offered: ToolEntry<'_>, instance: &InstanceLease) -> Result<(), Error> {
    if offered.is_set {
        // The instance itself set this tool, and reports it if its list has changed.
        return Ok(());
    }
    let name = offered.spec.name.as_str();
    let is_it = |has: ToolEntry<'_>| {
        // Usually it is the same object, and comparing large schemas is slow.
        std::ptr::eq(has.spec, offered.spec)
            || (has.spec == offered.spec && has.is_shipped == offered.is_shipped)
    };
    if instance.catalog().registry.tool(name).is_some_and(is_it) {
        return Ok(());
    }
    let text = format!("the tool `{name}` has changed: plugin `{}` was replaced", offered.plugin);
    Err(Error::new(ErrorKind::Unavailable, text).with_hint("the next turn offers the new tools"))
}

impl ToolSet for PluginTools {
    fn tools(&self) -> Vec<KnownTool> {
        let offer = self.host.plugins.plugins.session_offer(&self.session);
        let first = &self.host.setup.config.tools_first;
        let core = self.core.fitting_tools(offer.entries(), &self.host.registry(), first);
        let program = &self.host.program;
        let of_plugins =
            offer.entries().filter(|tool| program.tool(tool.spec.name.as_str()).is_none());
        let of_plugins = of_plugins.map(|tool| to_known_tool(tool, &core));
        let tools = program.known_tools().chain(of_plugins);
        let Some(only) = &self.only else { return tools.collect() };
        let lent = tools.filter(|tool| is_allowed_tool(tool, only));
        if !self.offers_all {
            return lent.collect();
        }
        lent.map(offered_from_the_start).collect()
    }

    fn renew_tools(&self, moment: RenewalMoment) -> BoxFuture<'_, ToolRenewal> {
        Box::pin(async move {
            let (host, session) = (&self.host, &self.session);
            let plugins = &host.plugins.plugins;
            let is_new = match moment {
                RenewalMoment::Turn => {
                    self.openings.wait().await;
                    host.plugins.check_plugin_files().await;
                    let instances = &host.plugins.instances;
                    plugins.begin_turn(session, |plugin| instances.is_live(plugin, session))
                }
                RenewalMoment::Step => plugins.begin_step(session),
            };
            let tools = is_new.then(|| self.tools());
            // A user who calls a tool from a shell sees notices of that tool's plugin only.
            let is_silent = moment == RenewalMoment::Step && !self.has_model;
            let mut notices = Vec::new();
            if !is_silent {
                notices = plugins.unseen_news(session, None);
                notices.extend(tools.as_ref().and_then(|_| self.unfitting_tools_notice()));
            }
            ToolRenewal { tools, notices }
        })
    }

    fn await_tools<'a>(
        &'a self,
        wanted: &'a WantedTools,
        tell: &'a (dyn Fn(String) + Send + Sync),
    ) -> BoxFuture<'a, Vec<ToolSource>> {
        Box::pin(async move {
            self.openings.wait().await;
            self.host.await_tools(&self.session, wanted, tell).await
        })
    }

    fn run_call(
        &self,
        call: ToolCall,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<Output, Error>> {
        Box::pin(Self::run_tool_call(Arc::clone(&self.host), self.has_model, call, scope))
    }

    fn has_environment_part(&self, part: EnvironmentPart) -> bool {
        self.host.environments.has_part(&self.session, part)
    }

    fn check_condition(
        &self,
        request: ConditionRequest,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<ConditionAnswer, Error>> {
        Box::pin(ask_condition(Arc::clone(&self.host), self.has_model, request, scope))
    }

    fn preview_call(
        &self,
        request: PreviewRequest,
        scope: CallScope,
    ) -> BoxFuture<'static, Result<Preview, Error>> {
        Box::pin(request_preview(Arc::clone(&self.host), self.has_model, request, scope))
    }
}

/// Returns true if a tool was lent to the session.
fn is_allowed_tool(tool: &KnownTool, only: &[AllowedTool]) -> bool {
    only.iter().any(|it| {
        it.plugin.as_ref().is_none_or(|plugin| *plugin == tool.plugin)
            && matches_tool(it.tool.as_str(), tool.spec.name.as_str())
    })
}

fn offered_from_the_start(mut tool: KnownTool) -> KnownTool {
    if matches!(tool.state, ToolState::Inactive) {
        tool.state = ToolState::Active;
    }
    tool
}

fn to_known_tool(tool: ToolEntry<'_>, core: &BTreeSet<ToolName>) -> KnownTool {
    let state = match tool.status {
        ToolStatus::Enabled if core.contains(&tool.spec.name) => ToolState::Active,
        ToolStatus::Enabled => ToolState::Inactive,
        ToolStatus::Disabled => ToolState::Disabled { by: "by `[tools] disabled`".into() },
        ToolStatus::NotEnabled => ToolState::Disabled {
            by: "because `[tools] enabled` or `--tools` does not name it".into(),
        },
    };
    let mut known = KnownTool::new(tool.spec.clone(), tool.plugin.clone(), tool.is_shipped);
    known.state = state;
    known
}
