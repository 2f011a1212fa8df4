//! A plugin instance that keeps resources.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use jaato_instances::{
    AskingInstance, DeltaCallback, FacetRequest, InstanceLease, StateEffect, WeakLease,
    invalid_answer_error,
};
use jaato_session::Cancel;
use jaato_types::resources::{ResourceAction, ResourceRequest};
use jaato_types::{Error, ErrorKind, Frame, SessionId};
use serde_json::Value;

use super::ResourceKeeper;
use crate::environments::Environments;
use crate::environments::scope::serialize_request;

/// An instance that keeps a resource. The instance stays until the resource is closed, even after
/// another instance replaced it.
pub struct InstanceKeeper {
    host: Weak<Environments>,
    session: SessionId,
    asker: AskingInstance,
    /// Holds the instance if it was known when the resource was registered.
    lease: Option<InstanceLease>,
}

impl InstanceKeeper {
    /// Creates a keeper for the instance that made the request.
    pub fn new(host: &Arc<Environments>, session: SessionId, asker: AskingInstance) -> Self {
        let lease = asker.get().and_then(WeakLease::upgrade);
        Self { host: Arc::downgrade(host), session, asker, lease }
    }

    fn lease(&self) -> Result<InstanceLease, Error> {
        let held = self.lease.clone().or_else(|| self.asker.get().and_then(WeakLease::upgrade));
        let lease = held.ok_or_else(|| {
            Error::new(ErrorKind::PluginCrashed, "its instance was closed or never created")
        })?;
        lease.end_error().map_or(Ok(lease), Err)
    }
}

impl ResourceKeeper for InstanceKeeper {
    fn request_action(&self, request: ResourceRequest) -> BoxFuture<'static, Result<Value, Error>> {
        let (host, lease, session) = (self.host.upgrade(), self.lease(), self.session.clone());
        Box::pin(async move {
            let ended = || Error::new(ErrorKind::Unavailable, "the host has ended");
            let (host, lease) = (host.ok_or_else(ended)?, lease?);
            let site = host.call_site(&session);
            let quiet: DeltaCallback = Arc::new(|_| {});
            let effect = match request.action {
                ResourceAction::Call => StateEffect::Changes,
                ResourceAction::Create | ResourceAction::Close => StateEffect::Reads,
            };
            let (facet, request, cancel) =
                (FacetRequest::Resource(effect), serialize_request(&request)?, Cancel::new());
            let plugin = lease.plugin().clone();
            let asked = host.plugins.ask_leased(lease, facet, &site, request, &quiet, &cancel);
            Frame::read(&asked.await?).map_err(invalid_answer_error(plugin.as_str()))
        })
    }

    fn end_error(&self) -> Option<Error> {
        self.lease().err()
    }
}
