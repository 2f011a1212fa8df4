//! The executor's record of one plugin: its name, how often it misbehaved, and whether it is
//! disabled.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::task::Poll;

use jaato_types::{Error, ErrorKind, PluginName};
use parking_lot::Mutex;

use super::PluginTask;
use super::jobs::{JOBS_LOST_MAX, PluginJobQueue};
use crate::bounds::PluginResourceCounters;
use crate::running::PluginNameIndex;
use crate::waiters::WakeSignal;

/// The number of misdeeds after which a plugin is disabled. One may be the machine's fault, but
/// three in one process are not.
pub const STRIKES_MAX: u32 = 3;

/// How often the futures of one plugin may be polled *again* within a second. A stream at full
/// speed needs some thousand polls. A future that keeps waking itself would occupy a whole core.
pub const REPOLLS_PER_SECOND_MAX: u32 = 50_000;

/// Why a plugin is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisableReason {
    /// Its polls blocked or never ended.
    ByStrikes,
    /// Its blocking work ignored cancels.
    ByJobs,
}

/// One plugin, as the executor sees it. Shared by its factory, instances, calls and jobs.
pub struct GuestPlugin {
    name: PluginName,
    name_place: PluginNameIndex,
    strikes: AtomicU32,
    disabled: OnceLock<DisableReason>,
    /// Wakes the tasks that wait for an answer that will not arrive.
    disabling: WakeSignal,
    repolls: AtomicU32,
    throttled: AtomicBool,
    pub(super) lane: Mutex<PluginJobQueue>,
    /// The state of the plugin's contexts on the host's side.
    pub(crate) holdings: PluginResourceCounters,
}

impl GuestPlugin {
    pub(super) fn new(name: PluginName) -> Self {
        let name_place = PluginNameIndex::for_plugin(&name);
        Self {
            name,
            name_place,
            strikes: AtomicU32::new(0),
            disabled: OnceLock::new(),
            disabling: WakeSignal::default(),
            repolls: AtomicU32::new(0),
            throttled: AtomicBool::new(false),
            lane: Mutex::default(),
            holdings: PluginResourceCounters::default(),
        }
    }

    /// Returns the plugin's name.
    pub fn name(&self) -> &PluginName {
        &self.name
    }

    /// Returns true if the plugin is disabled.
    pub fn is_disabled(&self) -> bool {
        self.disabled.get().is_some()
    }

    /// Waits until the plugin is disabled, which usually never happens.
    pub fn wait_until_disabled(&self) -> impl Future<Output = ()> + Send + Unpin {
        self.disabling.wait_until(|| self.is_disabled())
    }

    /// Waits for a task of the plugin. Returns its result, or the reason why there is none.
    ///
    /// # Errors
    /// The task's error, or `plugin_disabled` if the plugin is disabled before the task is done.
    pub async fn wait_unless_disabled<T>(
        &self,
        task: &mut PluginTask<Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut disabled = self.wait_until_disabled();
        poll_fn(|cx| match Pin::new(&mut *task).poll(cx) {
            Poll::Ready(done) => Poll::Ready(done.unwrap_or_else(|| Err(self.lost_error()))),
            Poll::Pending => Pin::new(&mut disabled).poll(cx).map(|()| Err(self.disabled_error())),
        })
        .await
    }

    /// Counts a misdeed. Returns the number of misdeeds.
    pub(super) fn count_strike(&self) -> u32 {
        let strikes = self.strikes.fetch_add(1, SeqCst) + 1;
        if strikes >= STRIKES_MAX {
            self.disable(DisableReason::ByStrikes);
        }
        strikes
    }

    /// Returns the number of misdeeds.
    pub fn strikes(&self) -> u32 {
        self.strikes.load(SeqCst)
    }

    /// Disables the plugin. Keeps the first reason.
    pub(super) fn disable(&self, why: DisableReason) {
        let _ = self.disabled.set(why);
        self.disabling.notify();
    }

    /// Returns the place of the plugin's name in the table that crash reports use.
    pub(crate) fn name_index(&self) -> PluginNameIndex {
        self.name_place
    }

    /// Counts a poll that is not a task's first.
    pub(super) fn count_repoll(&self) {
        if self.repolls.fetch_add(1, Relaxed) >= REPOLLS_PER_SECOND_MAX {
            self.throttled.store(true, SeqCst);
        }
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.throttled.load(SeqCst)
    }

    /// Starts a new second. Returns true if the plugin was throttled in the last one.
    pub(super) fn reset_repolls(&self) -> bool {
        self.repolls.store(0, Relaxed);
        self.throttled.swap(false, SeqCst)
    }

    /// Returns the error of calls of a disabled plugin.
    pub fn disabled_error(&self) -> Error {
        let why = match self.disabled.get() {
            Some(DisableReason::ByJobs) => format!(
                "more than {JOBS_LOST_MAX} of its blocking jobs continued after their calls were cancelled"
            ),
            Some(DisableReason::ByStrikes) | None => {
                format!("it blocked or flooded the plugin executor {STRIKES_MAX} times")
            }
        };
        let text = format!("the plugin `{}` is disabled: {why}", self.name);
        Error::new(ErrorKind::PluginDisabled, text).with_hint(
            "restart jaato and report this to the plugin's author; `[plugins] disabled` disables the plugin",
        )
    }

    /// Returns the error of a task that ended without a result, because the plugin is disabled or
    /// the engine failed.
    pub fn lost_error(&self) -> Error {
        if self.is_disabled() {
            return self.disabled_error();
        }
        let text = format!("the loader lost a task of the plugin `{}`", self.name);
        Error::new(ErrorKind::HostBug, text)
    }

    /// Returns the error of an invalid answer.
    pub fn misbehavior_error(&self, what: impl std::fmt::Display) -> Error {
        let text = format!("the plugin `{}` misbehaved: {what}", self.name);
        Error::new(ErrorKind::PluginMisbehaved, text)
    }
}
