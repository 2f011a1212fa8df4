//! A gc that follows a script and records its requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::{Error, GcPlan, GcRequest, Result};
use parking_lot::Mutex;

use crate::{Cancel, DeadlineHold, Gc};

type ScriptedPlanner = Arc<dyn Fn(&GcRequest) -> GcPlan + Send + Sync>;

/// The next action of a scripted gc.
#[derive(Clone)]
pub enum ScriptedGcAction {
    /// Proposes this plan.
    Plan(GcPlan),
    /// Proposes the plan that the closure makes from the request.
    PlanOf(ScriptedPlanner),
    /// Fails.
    Fail(Error),
    /// Never answers.
    Hang,
    /// Pauses its deadline for this many milliseconds, as for an answer of a model, and then
    /// proposes this plan.
    PlanAfterModel(u64, GcPlan),
}

impl ScriptedGcAction {
    /// Creates a plan that drops these messages.
    pub fn drop_messages(drop: impl IntoIterator<Item = usize>) -> Self {
        Self::Plan(GcPlan { v: 1, drop: drop.into_iter().collect(), ..GcPlan::default() })
    }

    /// Creates a plan from the request.
    pub fn plan_of(planner: impl Fn(&GcRequest) -> GcPlan + Send + Sync + 'static) -> Self {
        Self::PlanOf(Arc::new(planner))
    }

    /// Drops all turns except the last `turns`.
    pub fn keep_last_turns(turns: usize) -> Self {
        Self::plan_of(move |request| {
            let is_prompt = |at: &usize| request.messages[*at].is_prompt();
            let starts: Vec<usize> = (0..request.messages.len()).filter(is_prompt).collect();
            let kept = starts.get(starts.len().saturating_sub(turns.max(1))).copied();
            let drop = (0..kept.unwrap_or(0)).collect();
            GcPlan { v: 1, drop, ..GcPlan::default() }
        })
    }
}

/// A gc with prepared plans. It repeats the last one.
#[derive(Default)]
pub struct ScriptedGc {
    script: Mutex<Option<VecDeque<ScriptedGcAction>>>,
    requests: Mutex<Vec<GcRequest>>,
}

impl ScriptedGc {
    /// Adds a gc that performs one beat per request.
    pub fn add_gc(&self, beats: impl IntoIterator<Item = ScriptedGcAction>) {
        *self.script.lock() = Some(beats.into_iter().collect());
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<GcRequest> {
        self.requests.lock().clone()
    }

    pub(super) fn is_available(&self) -> bool {
        self.script.lock().is_some()
    }

    fn next_action(&self) -> Option<ScriptedGcAction> {
        let mut script = self.script.lock();
        let beats = script.as_mut()?;
        if beats.len() > 1 { beats.pop_front() } else { beats.front().cloned() }
    }
}

impl Gc for ScriptedGc {
    fn source(&self) -> &str {
        "scripted"
    }

    fn create_plan<'a>(
        &'a self,
        request: &'a GcRequest,
        _cancel: Cancel,
        hold: DeadlineHold,
    ) -> BoxFuture<'a, Result<GcPlan>> {
        self.requests.lock().push(request.clone());
        let beat = self.next_action();
        async move {
            match beat {
                Some(ScriptedGcAction::Plan(plan)) => Ok(plan),
                Some(ScriptedGcAction::PlanOf(planner)) => Ok(planner(request)),
                Some(ScriptedGcAction::Fail(error)) => Err(error),
                Some(ScriptedGcAction::PlanAfterModel(ms, plan)) => {
                    let _held = hold.pause();
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    Ok(plan)
                }
                Some(ScriptedGcAction::Hang) => std::future::pending().await,
                None => Err(Error::failed("the script has no plan")),
            }
        }
        .boxed()
    }
}
