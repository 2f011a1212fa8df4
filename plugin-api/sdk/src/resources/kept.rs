//! The resources that one instance of a plugin keeps, typed: [`Resources`].

use std::future::Future;
use std::sync::Arc;

use jaato_types::resources::{ResourceClosed, ResourceSet, SET};
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

use super::turn::Turns;
use super::{Kept, NewResource, Resource};
use crate::context::Reporter;

/// What an instance of a plugin keeps open: held by its [`State`](crate::State), which shows it to
/// the host with [`State::resources`](crate::State::resources). Clones are the same.
#[derive(Clone, Default)]
pub struct Resources(Arc<Inner>);

#[derive(Default)]
struct Inner {
    held: Mutex<Held>,
    turns: Turns,
}

#[derive(Default)]
struct Held {
    /// The last number that was given.
    last: u64,
    /// In the order in which they came: of two of one name the later is meant, while the earlier is
    /// closed.
    all: Vec<One>,
}

struct One {
    number: u64,
    name: String,
    kept: Kept,
}

impl Resources {
    /// Keeps a resource under a name of the environment. What had the name, here or in another
    /// plugin, is closed first. `host` is the call's [`Cx`](crate::Cx) or the instance's
    /// [`Home`](crate::Home).
    ///
    /// # Errors
    /// Where the host does not take it: `unavailable` where there is no environment or it is being
    /// closed, `limit_reached` where there are too many. The resource is closed then.
    pub async fn set<T: Resource>(
        &self,
        host: &Reporter,
        name: &str,
        resource: T,
    ) -> Result<Arc<T>> {
        let resource = Arc::new(resource);
        let set = self.put(name, Kept::new(Arc::clone(&resource)));
        // Before the host has it, so that whoever learns of it there finds it here.
        let taken: Result<ResourceClosed> = host.service(SET, &set).await;
        if let Err(error) = taken {
            self.take(set.number);
            // The host's refusal is what the caller must know.
            let _ = resource.close().await;
            return Err(error);
        }
        Ok(resource)
    }

    /// Returns what this instance keeps under a name; nothing where that is of another type, or
    /// another's.
    pub fn get<T: Resource>(&self, name: &str) -> Option<Arc<T>> {
        self.by_name(name)?.of_type()
    }

    /// Returns what this instance keeps under a name, or makes it: once, however many calls ask at
    /// a time. One that cannot be made leaves nothing, and the next who asks begins anew.
    ///
    /// # Errors
    /// `conflict` where the name is that of another type, and where `make` waits for the resource
    /// itself, perhaps by way of others that are made; what `make` fails with; else as
    /// [`Resources::set`].
    pub async fn get_or_create<T: Resource>(
        &self,
        host: &Reporter,
        name: &str,
        make: impl Future<Output = Result<T>> + Send,
    ) -> Result<Arc<T>> {
        let turn = self.0.turns.wait(name).await?;
        if let Some(kept) = self.by_name(name) {
            return of_type(name, &kept);
        }
        let made = turn.making(make).await?;
        self.set(host, name, made).await
    }

    /// Closes and forgets what has a name, here or in another plugin. False where there is none.
    ///
    /// # Errors
    /// What closing it came to; it is forgotten in any case.
    pub async fn remove(&self, host: &Reporter, name: &str) -> Result<bool> {
        let ResourceClosed { found, problem, .. } = host.resources().remove(name).await?;
        problem.map_or(Ok(found), |problem| Err(Error::failed(problem)))
    }

    /// Keeps what a factory has made; the host registers it.
    pub(super) fn put_new(&self, name: &str, NewResource(kept): NewResource) -> ResourceSet {
        self.put(name, kept)
    }

    pub(super) fn by_number(&self, number: u64) -> Option<Kept> {
        let held = self.lock();
        held.all.iter().find(|one| one.number == number).map(|one| one.kept.clone())
    }

    pub(super) fn take(&self, number: u64) -> Option<Kept> {
        let mut held = self.lock();
        let index = held.all.iter().position(|one| one.number == number)?;
        Some(held.all.remove(index).kept)
    }

    fn by_name(&self, name: &str) -> Option<Kept> {
        let held = self.lock();
        held.all.iter().rev().find(|one| one.name == name).map(|one| one.kept.clone())
    }

    fn put(&self, name: &str, kept: Kept) -> ResourceSet {
        let said = |text: String| if text.is_empty() { None } else { Some(text) };
        let (kind, about) = (said(kept.erased.kind().to_owned()), said(kept.erased.about()));
        let mut held = self.lock();
        held.last += 1;
        let number = held.last;
        held.all.push(One { number, name: name.to_owned(), kept });
        ResourceSet { name: name.to_owned(), number, kind, about, ..ResourceSet::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock()
    }
}

fn of_type<T: Resource>(name: &str, kept: &Kept) -> Result<Arc<T>> {
    kept.of_type().ok_or_else(|| {
        let (is, wanted) = (kept.type_name, std::any::type_name::<T>());
        let text = format!("the resource `{name}` is a `{is}`, not a `{wanted}`");
        Error::new(ErrorKind::Conflict, text)
    })
}

#[cfg(test)]
mod tests {
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
    fn what_is_kept_is_had_as_its_own_type_alone() {
        let resources = Resources::default();
        let set = resources.put_new("a", NewResource::new(Moon(7)));
        let kind = Some("moon".to_owned());
        assert_eq!(set, ResourceSet { name: "a".to_owned(), number: 1, kind, about: None });
        assert_eq!(resources.get::<Moon>("a").unwrap().0, 7);
        assert!(resources.get::<Sun>("a").is_none());
        assert!(resources.get::<Moon>("b").is_none());
    }

    #[test]
    fn what_is_of_another_type_is_refused_with_both() {
        let kept = Kept::new(Arc::new(Moon(7)));
        assert!(of_type::<Moon>("a", &kept).is_ok());
        let refused = of_type::<Sun>("a", &kept).map(drop).unwrap_err();
        let (is, wanted) = (std::any::type_name::<Moon>(), std::any::type_name::<Sun>());
        assert!(is.ends_with("::Moon") && wanted.ends_with("::Sun"));
        assert_eq!(refused.message, format!("the resource `a` is a `{is}`, not a `{wanted}`"));
    }

    #[test]
    fn of_two_of_one_name_the_later_is_meant_and_each_has_its_number() {
        let resources = Resources::default();
        let old = resources.put_new("a", NewResource::new(Moon(1))).number;
        let new = resources.put_new("a", NewResource::new(Sun));
        assert_eq!((new.kind, new.about), (None, Some("shines".to_owned())));
        assert!(resources.get::<Sun>("a").is_some());
        assert_eq!(resources.take(old).unwrap().of_type::<Moon>().unwrap().0, 1);
        assert!(resources.take(old).is_none());
        assert!(resources.get::<Sun>("a").is_some());
        assert!(resources.by_number(new.number).is_some());
    }
}
