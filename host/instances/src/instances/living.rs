//! An instance and who uses it: one that was followed by another is closed when its last call has
//! ended.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use jaato_catalog::Catalog;
use jaato_loader::Instance;
use tokio::runtime::Handle;

use super::Key;

/// An instance in its place, or one that was followed and still has calls.
pub struct Living {
    instance: Arc<Instance>,
    /// There once another has followed it.
    retired: OnceLock<Handle>,
    /// Set once it could not save its state.
    has_failed: AtomicBool,
}

impl Living {
    /// Takes an instance that was just made.
    pub fn new(instance: Instance) -> Self {
        Self {
            instance: Arc::new(instance),
            retired: OnceLock::new(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Returns true the first time that it is asked, so that a failure to save is told once.
    pub fn is_first_failure(&self) -> bool {
        !self.has_failed.swap(true, Relaxed)
    }

    /// Lets it be closed when nobody uses it any more.
    pub fn retire(&self) {
        // A second word changes nothing.
        let _ = self.retired.set(Handle::current());
    }
}

impl Deref for Living {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let Some(runtime) = self.retired.get() else { return };
        let instance = Arc::clone(&self.instance);
        // What it would save now comes too late, and one that was closed before says so.
        runtime.spawn(async move { drop(instance.close().await) });
    }
}

/// An instance for one call, or for as long as it keeps something.
#[derive(Clone)]
pub struct Lease {
    living: Arc<Living>,
    key: Key,
    catalog: Arc<Catalog>,
}

impl Lease {
    pub(super) fn new(living: Arc<Living>, key: Key, catalog: Arc<Catalog>) -> Self {
        Self { living, key, catalog }
    }

    /// Returns what is known of the plugin in the edition that this is an instance of.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns it without a hold on the instance.
    pub fn downgrade(&self) -> WeakLease {
        let living = Arc::downgrade(&self.living);
        WeakLease { living, key: self.key.clone(), catalog: Arc::clone(&self.catalog) }
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn living(&self) -> &Arc<Living> {
        &self.living
    }
}

impl Deref for Lease {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.living
    }
}

/// An instance that may be closed meanwhile.
pub struct WeakLease {
    living: Weak<Living>,
    key: Key,
    catalog: Arc<Catalog>,
}

impl WeakLease {
    /// Returns the instance, where it is still there.
    pub fn upgrade(&self) -> Option<Lease> {
        let (key, catalog) = (self.key.clone(), Arc::clone(&self.catalog));
        self.living.upgrade().map(|living| Lease { living, key, catalog })
    }
}
