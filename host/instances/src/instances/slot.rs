//! The content of an instance's place: the current instance, its saved state, and its number of
//! deaths.

use std::sync::{Arc, Weak};
use std::time::Duration;

use jaato_catalog::{Catalog, Edition};
use jaato_loader::Instance;
use jaato_types::{Error, ErrorKind, PluginName};
use tokio::time::Instant;

use super::InstanceKey;
use super::living_instance::{InstanceLease, LivingInstance};
use crate::copies::PluginCopy;

/// Number of worker deaths in quick succession after which no new instance is created.
pub const DEATHS_MAX: u32 = 5;
/// How long ago a death must be to be ignored.
const DEATHS_FORGOTTEN: Duration = Duration::from_secs(600);
/// The delay before the second worker after the first death. Doubles with each further death.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The content of a place.
#[derive(Default)]
pub struct InstanceSlot {
    pub instance: Option<Arc<LivingInstance>>,
    /// The source of the instance, or its source before it died.
    pub source: Option<InstanceSource>,
    /// The state that the instance saved last.
    pub saved: Option<Vec<u8>>,
    /// The file that it was opened from, if that is a private copy.
    pub copy: Option<Arc<PluginCopy>>,
    /// Replaced instances that may still have calls.
    retired: Vec<Weak<LivingInstance>>,
    deaths: u32,
    last_death: Option<Instant>,
    last_words: String,
}

/// The catalog and the edition for an instance.
#[derive(Clone)]
pub struct InstanceSource {
    pub catalog: Arc<Catalog>,
    pub edition: Edition,
}

/// A new instance.
pub struct NewInstance {
    pub instance: Instance,
    pub copy: Option<Arc<PluginCopy>>,
}

impl InstanceSource {
    /// Takes a plugin's source from a catalog.
    pub fn from_catalog(catalog: &Arc<Catalog>, plugin: &str) -> Self {
        Self { catalog: Arc::clone(catalog), edition: catalog.edition(plugin) }
    }

    /// Returns the edition's number.
    pub fn edition_number(&self) -> u64 {
        self.edition.number
    }
}

impl InstanceSlot {
    /// Stores an instance.
    pub fn store_instance(&mut self, made: NewInstance, source: &InstanceSource) {
        self.instance = Some(Arc::new(LivingInstance::new(made.instance)));
        self.copy = made.copy;
        self.source = Some(source.clone());
    }

    /// Lends the instance to a call.
    pub fn lease(&self, key: InstanceKey) -> Result<InstanceLease, Error> {
        match (&self.instance, &self.source) {
            (Some(living), Some(source)) => {
                Ok(InstanceLease::new(Arc::clone(living), key, Arc::clone(&source.catalog)))
            }
            (_, _) => Err(Error::new(ErrorKind::HostBug, "there is no instance to lend")),
        }
    }

    /// Releases an instance that is being replaced. It is closed when its last call ends.
    pub fn retire(&mut self) {
        self.retired.retain(|living| living.strong_count() > 0);
        if let Some(living) = self.instance.take() {
            living.retire();
            self.retired.push(Arc::downgrade(&living));
        }
    }

    /// Takes all living instances out.
    pub fn take_all(&mut self) -> Vec<Arc<LivingInstance>> {
        let retired = self.retired.drain(..).filter_map(|living| living.upgrade());
        retired.chain(self.instance.take()).collect()
    }

    /// Counts a worker's death and releases its instance.
    pub fn record_death(&mut self, error: &Error) {
        let now = Instant::now();
        if self.last_death.is_none_or(|last| now - last > DEATHS_FORGOTTEN) {
            self.deaths = 0;
        }
        self.deaths += 1;
        self.last_death = Some(now);
        self.last_words.clone_from(&error.message);
        self.instance = None;
    }

    /// Resets the number of deaths, because they belong to another edition.
    pub fn forget_deaths(&mut self) {
        self.deaths = 0;
    }

    /// Returns an error if too many workers died.
    pub fn check_crashes(&self, name: &PluginName) -> Result<(), Error> {
        if self.deaths < DEATHS_MAX {
            return Ok(());
        }
        let text = format!(
            "plugin `{name}` was disabled after its worker crashed {DEATHS_MAX} times; the last time: {}",
            self.last_words
        );
        Err(Error::new(ErrorKind::PluginDisabled, text).with_hint(format!(
            "report this to the plugin's author; `/plugin reload {name}` restarts it in a conversation, `jaato plugin disable {name}` disables it permanently"
        )))
    }

    pub async fn wait_after_death(&self) {
        let Some(last) = self.last_death.filter(|_| self.deaths > 1) else { return };
        let wait = BACK_OFF * 2_u32.saturating_pow(self.deaths - 2);
        tokio::time::sleep_until(last + wait).await;
    }
}
