//! An instance of a plugin that keeps resources.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use jaato_session::Cancel;
use jaato_types::resources::{RESOURCE, ResourceAction, ResourceRequest};
use jaato_types::{Error, ErrorKind, Frame, SessionId};
use serde_json::Value;

use super::{Keeper, Making};
use crate::environments::scope::write;
use crate::host::Host;
use crate::instances::{Lease, WeakLease};
use crate::services::{Place, Tell};
use crate::tools::{drive, misbehaved};

/// The instance that a service was asked by: known once it is made.
pub type Asker = Arc<OnceLock<WeakLease>>;

/// An instance that keeps a resource. It stays until the resource is closed, also where another has
/// followed it.
pub struct InstanceKeeper {
    host: Weak<Host>,
    session: SessionId,
    asker: Asker,
    /// Holds the instance where it was known when the resource was registered.
    lease: Option<Lease>,
}

impl InstanceKeeper {
    /// Takes the instance that asked.
    pub fn new(host: &Arc<Host>, session: SessionId, asker: Asker) -> Self {
        let lease = asker.get().and_then(WeakLease::upgrade);
        Self { host: Arc::downgrade(host), session, asker, lease }
    }

    fn lease(&self) -> Result<Lease, Error> {
        let held = self.lease.clone().or_else(|| self.asker.get().and_then(WeakLease::upgrade));
        let lease = held.ok_or_else(|| {
            Error::new(ErrorKind::PluginCrashed, "its instance was closed, or never made")
        })?;
        lease.ended().map_or(Ok(lease), Err)
    }
}

impl Keeper for InstanceKeeper {
    fn ask(
        &self,
        request: ResourceRequest,
        making: Option<&Making>,
    ) -> BoxFuture<'static, Result<Value, Error>> {
        let (host, lease) = (self.host.upgrade(), self.lease());
        let (session, making) = (self.session.clone(), making.cloned());
        Box::pin(async move {
            let ended = || Error::new(ErrorKind::Unavailable, "the host has ended");
            let (host, lease) = (host.ok_or_else(ended)?, lease?);
            let place = Place { making, ..Place::of_session(&host, &session) };
            let quiet: Tell = Arc::new(|_| {});
            let services = host.services_on(&lease, &place, &quiet)?;
            let running = lease.operation(RESOURCE, write(&request)?, services)?;
            let answer = drive(running, &Cancel::new(), |_| {}).await;
            if request.action == ResourceAction::Call {
                host.save(&lease, &quiet).await;
            }
            Frame::read(&answer?).map_err(misbehaved)
        })
    }

    fn ended(&self) -> Option<Error> {
        self.lease().err()
    }
}
