//! An instance and its users. A replaced instance is closed when its last call ends.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use jaato_catalog::Catalog;
use jaato_loader::Instance;
use tokio::runtime::Handle;

use super::InstanceKey;

/// A current instance, or a replaced one that still has calls.
pub struct LivingInstance {
    instance: Arc<Instance>,
    /// Set once another instance has replaced it.
    retired: OnceLock<Handle>,
    /// Set once it could not save its state.
    has_failed: AtomicBool,
}

impl LivingInstance {
    /// Wraps a new instance.
    pub fn new(instance: Instance) -> Self {
        Self {
            instance: Arc::new(instance),
            retired: OnceLock::new(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Returns true on the first call, so that a failure to save is reported once.
    pub fn is_first_failure(&self) -> bool {
        !self.has_failed.swap(true, Relaxed)
    }

    /// Allows the instance to be closed when no one uses it.
    pub fn retire(&self) {
        // Further calls have no effect.
        let _ = self.retired.set(Handle::current());
    }
}

impl Deref for LivingInstance {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Drop for LivingInstance {
    fn drop(&mut self) {
        let Some(runtime) = self.retired.get() else { return };
        let instance = Arc::clone(&self.instance);
        // Its saved state would come too late, and an instance that was closed before returns an
        // error.
        runtime.spawn(async move { drop(instance.close().await) });
    }
}

/// An instance on loan for one call, or for as long as it keeps something.
#[derive(Clone)]
pub struct InstanceLease {
    living: Arc<LivingInstance>,
    key: InstanceKey,
    catalog: Arc<Catalog>,
}

impl InstanceLease {
    pub(super) fn new(
        living: Arc<LivingInstance>,
        key: InstanceKey,
        catalog: Arc<Catalog>,
    ) -> Self {
        Self { living, key, catalog }
    }

    /// Returns the catalog with the edition of this instance.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns a weak reference to the instance.
    pub fn downgrade(&self) -> WeakLease {
        let living = Arc::downgrade(&self.living);
        WeakLease { living, key: self.key.clone(), catalog: Arc::clone(&self.catalog) }
    }

    pub(super) fn key(&self) -> &InstanceKey {
        &self.key
    }

    pub(super) fn living_instance(&self) -> &Arc<LivingInstance> {
        &self.living
    }
}

impl Deref for InstanceLease {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.living
    }
}

/// A weak reference to an instance that may be closed.
pub struct WeakLease {
    living: Weak<LivingInstance>,
    key: InstanceKey,
    catalog: Arc<Catalog>,
}

impl WeakLease {
    /// Returns the instance, if it still exists.
    pub fn upgrade(&self) -> Option<InstanceLease> {
        let (key, catalog) = (self.key.clone(), Arc::clone(&self.catalog));
        self.living.upgrade().map(|living| InstanceLease { living, key, catalog })
    }
}
