//! Decides whether a call may run: the tool exists, the arguments match, and [`jaato_approval`]
//! allows it.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_approval::{CallContext, CallVerdict, CandidateCall, GuardOutcome, SessionApproval};
use jaato_policy::{Caller, CallingAgent, PluginSource};
use jaato_types::files::FileLimits;
use jaato_types::hooks::{Preview, ToolCallOrigin};
use jaato_types::{Event, Result, ToolCall};
use serde_json::Value;

use super::{AdmittedCall, CallDecision, CallInitiator, CallRunner, CallsOutcome};
use crate::hooks::GuardedCallFacts;
use crate::{Agent, CallFiles, KnownTool, introspection};

impl CallRunner<'_> {
    /// Admits a call that is not part of a model's answer.
    pub(super) async fn admit_single_call<'a>(&'a self, call: &'a ToolCall) -> AdmittedCall<'a> {
        self.admit_call(call, std::slice::from_ref(call), &mut CallsOutcome::default()).await
    }

    /// Admits or refuses one of these calls.
    pub(super) async fn admit_call<'a>(
        &'a self,
        call: &'a ToolCall,
        all: &[ToolCall],
        done: &mut CallsOutcome,
    ) -> AdmittedCall<'a> {
        if self.cancel.is_cancelled() {
            return AdmittedCall::without_tool(call, CallDecision::Drop);
        }
        let found = match self.toolbox.find_tool(&call.name) {
            Ok(found) => found,
            Err(error) => return AdmittedCall::without_tool(call, CallDecision::Refuse(error)),
        };
        let tool = found.tool;
        if !found.active && !done.activated.contains(&call.name) {
            done.activated.push(call.name.clone());
        }
        let withheld = match self.initiative {
            // By the rules, a plugin may call its own tool even if no one else is offered it.
            CallInitiator::Plugin if self.origin.is_some_and(|by| by.plugin == tool.plugin) => None,
            CallInitiator::Model | CallInitiator::Plugin => self.toolbox.withheld_error(&call.name),
            CallInitiator::Person | CallInitiator::Tool => None,
        };
        let checked =
            withheld.map_or_else(|| self.toolbox.check_arguments(tool, &call.arguments), Err);
        if let Err(error) = checked {
            let tool = Some(tool);
            return AdmittedCall {
                tool,
                ..AdmittedCall::without_tool(call, CallDecision::Refuse(error))
            };
        }
        let times = all.iter().filter(|it| is_equal_call(it, call)).count();
        let admitted = self.approve_call(call, tool, times, done).await;
        if matches!(admitted.fate, CallDecision::Run(_)) && introspection::is_host_tool(tool) {
            done.activated
                .extend(introspection::tools_to_activate(&self.toolbox, admitted.effective_call()));
        }
        admitted
    }

    /// Gets a decision about the call.
    async fn approve_call<'a>(
        &'a self,
        call: &'a ToolCall,
        tool: &'a KnownTool,
        times: usize,
        done: &mut CallsOutcome,
    ) -> AdmittedCall<'a> {
        let source = PluginSource::from_origin(tool.shipped, tool.spec.foreign);
        let (spec, schema, plugin) = (&tool.spec, tool.schema(), &tool.plugin);
        let candidate = CandidateCall { call, spec, schema, plugin, source, times };
        let approval = self.session_approval();
        let context = ToolContext { runner: self, tool };
        let CallVerdict { refusal, changed, lacks_user, limits, is_permitted, note, .. } = tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                let tool = Some(tool);
                return AdmittedCall { tool, ..AdmittedCall::without_tool(call, CallDecision::Drop) };
            }
            verdict = approval.decide_call(&candidate, &context, &mut done.equal) => verdict,
        };
        if lacks_user {
            done.without_user = done.without_user.take().or_else(|| refusal.clone());
        }
        let fate = match refusal {
            None => CallDecision::Run(Arc::new(CallFiles::new(limits))),
            Some(error) => CallDecision::Refuse(error),
        };
        AdmittedCall { call, changed, tool: Some(tool), fate, is_permitted, note }
    }

    fn session_approval(&self) -> SessionApproval<'_> {
        SessionApproval {
            session: self.session,
            rules: self.rules,
            gate: &*self.ports.gate,
            asker: &*self.ports.asker,
            patience_ms: self.patience_ms,
            caller: match self.initiative {
                CallInitiator::Model | CallInitiator::Tool | CallInitiator::Plugin => Caller::Model,
                CallInitiator::Person => Caller::Person,
            },
            called_by: self.origin.map(|origin| &origin.plugin),
            agent: self.agent.as_ref().map_or(CallingAgent::MAIN, calling_agent),
        }
    }

    async fn ask_guards(&self, call: &ToolCall, tool: &KnownTool) -> GuardOutcome {
        let called_by = match self.initiative {
            CallInitiator::Model => ToolCallOrigin::Model,
            CallInitiator::Person => ToolCallOrigin::Person,
            CallInitiator::Tool => ToolCallOrigin::Itself,
            CallInitiator::Plugin => ToolCallOrigin::Plugin,
        };
        let about = GuardedCallFacts {
            owner: introspection::tool_owner(Some(tool)),
            annotations: tool.spec.annotations,
            called_by,
            caller: self.origin.map(|origin| origin.plugin.clone()).unwrap_or_default(),
            check: &|arguments| self.toolbox.check_arguments(tool, arguments),
        };
        self.hooks.ask_before_tool(call, about, self.cancel).await
    }
}

/// The facts that the decision about a call needs from the session.
struct ToolContext<'a> {
    runner: &'a CallRunner<'a>,
    tool: &'a KnownTool,
}

impl ToolContext<'_> {
    /// Waits for an answer. After a cancel this never returns, and the decision is dropped.
    async fn unless_cancelled<T>(&self, answer: impl Future<Output = T>) -> T {
        let answer = answer.await;
        match self.runner.cancel.is_cancelled() {
            true => std::future::pending().await,
            false => answer,
        }
    }
}

impl CallContext for ToolContext<'_> {
    fn ask_guards<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, GuardOutcome> {
        self.unless_cancelled(self.runner.ask_guards(call, self.tool)).boxed()
    }

    fn preview_call<'a>(
        &'a self,
        call: &'a ToolCall,
        limits: FileLimits,
    ) -> BoxFuture<'a, Option<Preview>> {
        self.unless_cancelled(self.runner.request_preview(call, self.tool, limits)).boxed()
    }

    fn check_arguments(&self, arguments: &Value) -> Result<()> {
        self.runner.toolbox.check_arguments(self.tool, arguments)
    }

    fn emit(&self, event: Event) {
        self.runner.emitter.emit(event);
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        self.runner.ports.clock.sleep(ms)
    }

    fn pause_deadlines(&self) -> Box<dyn Send> {
        let of_origin = self.runner.origin.map(|origin| origin.hold.pause());
        Box::new((of_origin, self.runner.agent.as_ref().map(|agent| agent.hold.pause())))
    }
}

fn is_equal_call(one: &ToolCall, other: &ToolCall) -> bool {
    one.name == other.name && one.arguments == other.arguments
}

fn calling_agent(agent: &Agent) -> CallingAgent<'_> {
    CallingAgent { agent_type: "subagent", agent_name: &agent.name }
}
