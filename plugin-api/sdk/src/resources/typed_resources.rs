//! The typed resources of one plugin instance ([`Resources`]), and the operation with which the
//! host accesses them.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use jaato_types::resources::{
    ResourceAction, ResourceCloseAnswer, ResourceRequest, ResourceSet, SET,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::{AnyResource, NewResource, Resource};
use crate::context::{Cx, Reporter};
use crate::instance::{encode_value, invalid_frame_error};
use crate::state::State;

/// The maximum wait of a call while another call creates the resource.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The open resources of a plugin instance. The plugin's [`State`](crate::State) holds them and
/// returns them from [`State::resources`](crate::State::resources). Clones share the resources.
#[derive(Clone, Default)]
pub struct Resources(Arc<Mutex<OpenResources>>);

#[derive(Default)]
struct OpenResources {
    /// The last assigned number.
    last: u64,
    /// The resources in order of arrival. If two have the same name, the later one is valid, and
    /// the earlier one is being closed.
    all: Vec<OpenResource>,
    /// The names of the resources that are being created, and the calls that wait for each.
    making: HashMap<String, Vec<Waker>>,
}

struct OpenResource {
    number: u64,
    name: String,
    kept: AnyResource,
}

impl Resources {
    /// Adds a resource under a name in the environment. A resource with the same name, of this or
    /// another plugin, is closed first. `host` is the call's [`Cx`](crate::Cx) or the instance's
    /// [`Home`](crate::Home).
    ///
    /// # Errors
    /// If the host refuses the resource: `unavailable` without an environment or while it is being
    /// closed, `limit_reached` if there are too many resources. The resource is then closed.
    pub async fn set<T: Resource>(
        &self,
        host: &Reporter,
        name: &str,
        resource: T,
    ) -> Result<Arc<T>> {
        let resource = Arc::new(resource);
        let set = self.register_resource(name, Arc::clone(&resource) as AnyResource);
        // The resource is already in `self`, so that callers who learn of it from the host find it.
        let taken: Result<ResourceCloseAnswer> = host.service(SET, &set).await;
        if let Err(error) = taken {
            self.take_resource(set.number);
            // The caller needs the host's error, not that of the closing.
            let _ = resource.close().await;
            return Err(error);
        }
        Ok(resource)
    }

    /// Returns this instance's resource with a name, or `None` if it has another type or belongs to
    /// another plugin.
    pub fn get<T: Resource>(&self, name: &str) -> Option<Arc<T>> {
        self.by_name(name)?.into_any().downcast().ok()
    }

    /// Returns this instance's resource with a name, or creates it, once for all simultaneous
    /// callers. If the creation fails, nothing remains, and the next caller tries again. `make`
    /// must not request the same resource, because that call fails after 60 s.
    ///
    /// # Errors
    /// `conflict` if the resource with this name has another type; `timeout` if another call takes
    /// more than 60 s to create it; the error of `make`; otherwise as [`Resources::set`].
    pub async fn get_or_create<T: Resource>(
        &self,
        host: &Reporter,
        name: &str,
        make: impl Future<Output = Result<T>> + Send,
    ) -> Result<Arc<T>> {
        let late = || {
            let text = format!("another call has been making the resource `{name}` for 60 s");
            Error::new(ErrorKind::Timeout, text)
        };
        let (mut turn, mut limit) = (pin!(self.wait_for_turn(name)), pin!(host.sleep(WAIT_MAX)));
        let turn = poll_fn(|cx| match turn.as_mut().poll(cx) {
            Poll::Ready(turn) => Poll::Ready(Ok(turn)),
            Poll::Pending => {
                limit.as_mut().poll(cx).map(|slept| Err(slept.err().unwrap_or_else(late)))
            }
        });
        let _turn = turn.await?;
        let Some(kept) = self.by_name(name) else { return self.set(host, name, make.await?).await };
        let is = kept.type_name();
        kept.into_any().downcast().map_err(|_| {
            let wanted = std::any::type_name::<T>();
            let text = format!("the resource `{name}` is a `{is}`, not a `{wanted}`");
            Error::new(ErrorKind::Conflict, text)
        })
    }

    /// Closes and removes the resource with a name, of this or another plugin. Returns false if
    /// there is none.
    ///
    /// # Errors
    /// The error of the closing. The resource is removed regardless.
    pub async fn remove(&self, host: &Reporter, name: &str) -> Result<bool> {
        let ResourceCloseAnswer { found, problem, .. } = host.resources().remove(name).await?;
        problem.map_or(Ok(found), |problem| Err(Error::failed(problem)))
    }

    /// Waits until no other call is creating the resource with this name.
    async fn wait_for_turn<'a>(&'a self, name: &'a str) -> ResourceCreationLock<'a> {
        poll_fn(|cx| {
            let mut held = self.lock();
            let Some(waiting) = held.making.get_mut(name) else {
                held.making.insert(name.to_owned(), Vec::new());
                return Poll::Ready(ResourceCreationLock(self, name));
            };
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    fn by_number(&self, number: u64, name: &str) -> Result<AnyResource> {
        let held = self.lock();
        let found = held.all.iter().find(|one| one.number == number);
        found.map(|one| Arc::clone(&one.kept)).ok_or_else(|| {
            let text = format!("the plugin no longer has the resource `{name}`");
            Error::new(ErrorKind::NotFound, text)
        })
    }

    fn take_resource(&self, number: u64) -> Option<AnyResource> {
        let mut held = self.lock();
        let index = held.all.iter().position(|one| one.number == number)?;
        Some(held.all.remove(index).kept)
    }

    fn by_name(&self, name: &str) -> Option<AnyResource> {
        let held = self.lock();
        held.all.iter().rev().find(|one| one.name == name).map(|one| Arc::clone(&one.kept))
    }

    fn register_resource(&self, name: &str, kept: AnyResource) -> ResourceSet {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let (kind, about) = (said(kept.kind().to_owned()), said(kept.about()));
        let mut held = self.lock();
        held.last += 1;
        let number = held.last;
        held.all.push(OpenResource { number, name: name.to_owned(), kept });
        ResourceSet { name: name.to_owned(), number, kind, about, ..ResourceSet::default() }
    }

    fn lock(&self) -> MutexGuard<'_, OpenResources> {
        self.0.lock()
    }
}

/// The exclusive right to create the resource with a name. Dropping it wakes the other callers.
struct ResourceCreationLock<'a>(&'a Resources, &'a str);

impl Drop for ResourceCreationLock<'_> {
    fn drop(&mut self) {
        let waiting = self.0.lock().making.remove(self.1);
        // Wake all of them, because one that has been dropped would not wake the next.
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Answers the operation with which the host accesses a plugin's resources.
pub(crate) async fn answer_request<S: State>(cx: &Cx<S>, frame: &[u8]) -> Result<Vec<u8>> {
    let request: ResourceRequest = Frame::read(frame).map_err(invalid_frame_error)?;
    let Some(resources) = cx.state().resources() else {
        let text = "the plugin shows no resources: its state has no `resources`";
        return Err(Error::new(ErrorKind::UnknownOperation, text));
    };
    let ResourceRequest { action, name, number, operation, arguments, .. } = request;
    match action {
        // The host registers it.
        ResourceAction::Create => {
            let NewResource(kept) = S::create_resource(cx, &name).await?;
            encode_value(&resources.register_resource(&name, kept))
        }
        ResourceAction::Call => {
            let kept = resources.by_number(number, &name)?;
            encode_value(&kept.call(&operation, arguments).await?)
        }
        ResourceAction::Close => {
            if let Some(kept) = resources.take_resource(number) {
                kept.close().await?;
            }
            encode_value(&Value::Null)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    struct Moon(u8);
    struct Sun;

    impl Resource for Moon {
        const KIND: &'static str = "moon";

        async fn close(&self) -> Result<()> {
            Ok(())
        }
    }

    impl Resource for Sun {
        fn about(&self) -> String {
            "shines".to_owned()
        }

        async fn close(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn newest_resource_with_a_name_is_found_by_its_type() {
        let resources = Resources::default();
        let old = resources.register_resource("a", Arc::new(Moon(7)));
        let kind = Some("moon".to_owned());
        assert_eq!(old, ResourceSet { name: "a".to_owned(), number: 1, kind, about: None });
        assert_eq!(resources.get::<Moon>("a").unwrap().0, 7);
        assert!(resources.get::<Sun>("a").is_none() && resources.get::<Moon>("b").is_none());
        let new = resources.register_resource("a", Arc::new(Sun));
        assert_eq!((new.kind, new.about), (None, Some("shines".to_owned())));
        assert!(resources.get::<Sun>("a").is_some());
        assert!(
            resources.take_resource(old.number).is_some()
                && resources.take_resource(old.number).is_none()
        );
        assert!(resources.get::<Sun>("a").is_some());
        assert!(resources.by_number(new.number, "a").is_ok());
    }

    #[test]
    fn one_waiter_has_the_turn_and_dropped_waiters_are_skipped() {
        let resources = Resources::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(first) = pin!(resources.wait_for_turn("a")).poll(cx) else {
            panic!("it is free")
        };
        let mut second = pin!(resources.wait_for_turn("a"));
        assert!(second.as_mut().poll(cx).is_pending());
        assert!(pin!(resources.wait_for_turn("a")).poll(cx).is_pending(), "and gives up");
        assert!(
            pin!(resources.wait_for_turn("b")).poll(cx).is_ready(),
            "another name is another's turn"
        );
        drop(first);
        assert!(second.as_mut().poll(cx).is_ready());
    }
}
