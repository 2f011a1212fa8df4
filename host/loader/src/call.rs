//! A plugin call as its session holds it, on the plugin executor or in a worker.

use std::sync::Arc;

use jaato_plugin_engine::{FrameBytes, HostContext, PluginTask};
use jaato_types::Error;

use crate::remote::{RemoteCall, RemoteCanceller};

/// A running call, on the plugin executor or in a worker. Dropping it cancels the call.
///
/// Read [`RunningCall::next_emission`] to its end first, then take [`RunningCall::answer`]: all
/// emissions arrive before the answer.
#[must_use = "dropping it cancels the call"]
pub struct RunningCall {
    // Dropped before the task, so that the cancel flag is set first and further requests of the
    // plugin are refused.
    core: ContextCancelGuard,
    work: CallBackend,
}

enum CallBackend {
    Local(PluginTask<Result<FrameBytes, Error>>),
    Remote(RemoteCall),
}

struct ContextCancelGuard(Arc<HostContext>);

impl Drop for ContextCancelGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl RunningCall {
    pub(crate) fn new(core: Arc<HostContext>, task: PluginTask<Result<FrameBytes, Error>>) -> Self {
        Self { core: ContextCancelGuard(core), work: CallBackend::Local(task) }
    }

    pub(crate) fn from_remote(core: Arc<HostContext>, call: RemoteCall) -> Self {
        Self { core: ContextCancelGuard(core), work: CallBackend::Remote(call) }
    }

    /// Waits for the next frame that the call emits. Returns `None` once the call has ended and
    /// every frame was read.
    pub async fn next_emission(&mut self) -> Option<Vec<u8>> {
        let next = self.core.0.next_emission();
        match &self.work {
            CallBackend::Local(_) => next.await,
            CallBackend::Remote(call) => call.resume_while_waiting(next).await,
        }
    }

    /// Cancels the call but keeps it, so that the remaining emissions can be read. Its answer is
    /// `cancelled`.
    pub fn cancel(&self) {
        self.core.0.cancel();
        match &self.work {
            CallBackend::Local(_) => self.core.0.wake_call(),
            CallBackend::Remote(call) => call.cancel(),
        }
    }

    /// Returns a handle that cancels the call while another task waits for it.
    pub fn canceller(&self) -> CallCanceller {
        let remote = match &self.work {
            CallBackend::Local(_) => None,
            CallBackend::Remote(call) => Some(call.canceller()),
        };
        CallCanceller { core: Arc::clone(&self.core.0), remote }
    }

    /// Waits for the answer: a checked frame.
    ///
    /// # Errors
    /// The plugin's error, `plugin_misbehaved` for an invalid answer, `plugin_disabled`, or
    /// `cancelled`.
    pub async fn answer(self) -> Result<Vec<u8>, Error> {
        self.answer_bytes().await.map(FrameBytes::into_vec)
    }

    /// Waits for the answer, without copying it.
    ///
    /// # Errors
    /// As [`RunningCall::answer`].
    pub async fn answer_bytes(mut self) -> Result<FrameBytes, Error> {
        match &mut self.work {
            CallBackend::Local(task) => self.core.0.guest.wait_unless_disabled(task).await,
            CallBackend::Remote(call) => call.answer().await.map(FrameBytes::from),
        }
    }
}

/// Cancels a call from anywhere.
pub struct CallCanceller {
    core: Arc<HostContext>,
    remote: Option<RemoteCanceller>,
}

impl CallCanceller {
    /// Returns a canceller for a call on the plugin executor.
    pub(crate) fn for_local_call(core: Arc<HostContext>) -> Self {
        Self { core, remote: None }
    }

    /// Cancels the call. Everything that it waits for is refused afterwards.
    pub fn cancel(&self) {
        self.core.cancel();
        match &self.remote {
            None => self.core.wake_call(),
            Some(remote) => remote.cancel(),
        }
    }
}
