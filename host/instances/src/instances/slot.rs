//! What is in the place of an instance: the one that is called, what it saved, how often it died.

use std::sync::{Arc, Weak};
use std::time::Duration;

use jaato_catalog::{Catalog, Edition};
use jaato_loader::Instance;
use jaato_types::{Error, ErrorKind, PluginName};
use tokio::time::Instant;

use super::Key;
use super::living::{Lease, Living};
use crate::copies::Copy;

/// Deaths of its worker, one soon after the other, after which an instance is not made again.
pub const DEATHS_MAX: u32 = 5;
/// How long ago a death counts no more.
const DEATHS_FORGOTTEN: Duration = Duration::from_secs(600);
/// How long the second worker waits after the death of the first; doubles with each further one.
const BACK_OFF: Duration = Duration::from_millis(100);

/// What is in a place.
#[derive(Default)]
pub struct Slot {
    pub instance: Option<Arc<Living>>,
    /// What the instance is made of, or was before it died.
    pub source: Option<Source>,
    /// What the instance saved last.
    pub saved: Option<Vec<u8>>,
    /// The file that it was opened from, where that is a private copy.
    pub copy: Option<Arc<Copy>>,
    /// Those that were followed by another and may have calls still.
    retired: Vec<Weak<Living>>,
    deaths: u32,
    last_death: Option<Instant>,
    last_words: String,
}

/// What an instance is made of.
#[derive(Clone)]
pub struct Source {
    pub catalog: Arc<Catalog>,
    pub edition: Edition,
}

/// An instance that was just made.
pub struct Made {
    pub instance: Instance,
    pub copy: Option<Arc<Copy>>,
}

impl Source {
    /// Takes what a catalog has of a plugin.
    pub fn of(catalog: &Arc<Catalog>, plugin: &str) -> Self {
        Self { catalog: Arc::clone(catalog), edition: catalog.edition(plugin) }
    }

    /// Returns the edition's number.
    pub fn number(&self) -> u64 {
        self.edition.number
    }
}

impl Slot {
    /// Takes an instance.
    pub fn put(&mut self, made: Made, source: &Source) {
        self.instance = Some(Arc::new(Living::new(made.instance)));
        self.copy = made.copy;
        self.source = Some(source.clone());
    }

    /// Lends the instance to a call.
    pub fn lease(&self, key: Key) -> Result<Lease, Error> {
        match (&self.instance, &self.source) {
            (Some(living), Some(source)) => {
                Ok(Lease::new(Arc::clone(living), key, Arc::clone(&source.catalog)))
            }
            (_, _) => Err(Error::new(ErrorKind::HostBug, "no instance is there to be lent")),
        }
    }

    /// Lets go of an instance that another follows: it is closed when its last call has ended.
    pub fn retire(&mut self) {
        self.retired.retain(|living| living.strong_count() > 0);
        if let Some(living) = self.instance.take() {
            living.retire();
            self.retired.push(Arc::downgrade(&living));
        }
    }

    /// Takes out all instances that live.
    pub fn take_all(&mut self) -> Vec<Arc<Living>> {
        let retired = self.retired.drain(..).filter_map(|living| living.upgrade());
        retired.chain(self.instance.take()).collect()
    }

    /// Counts a worker's death and lets go of its instance.
    pub fn died(&mut self, error: &Error) {
        let now = Instant::now();
        if self.last_death.is_none_or(|last| now - last > DEATHS_FORGOTTEN) {
            self.deaths = 0;
        }
        self.deaths += 1;
        self.last_death = Some(now);
        self.last_words.clone_from(&error.message);
        self.instance = None;
    }

    /// Forgets deaths: they were those of another edition.
    pub fn forget_deaths(&mut self) {
        self.deaths = 0;
    }

    /// Refuses another worker when too many died.
    pub fn check(&self, name: &PluginName) -> Result<(), Error> {
        if self.deaths < DEATHS_MAX {
            return Ok(());
        }
        let text = format!(
            "plugin `{name}` is not run any more: its worker died {DEATHS_MAX} times; the last time: {}",
            self.last_words
        );
        Err(Error::new(ErrorKind::PluginDisabled, text).with_hint(format!(
            "tell the plugin's author; `/plugin reload {name}` in a conversation begins it anew, `jaato plugin disable {name}` keeps it out"
        )))
    }

    pub async fn wait_after_death(&self) {
        let Some(last) = self.last_death.filter(|_| self.deaths > 1) else { return };
        let wait = BACK_OFF * 2_u32.saturating_pow(self.deaths - 2);
        tokio::time::sleep_until(last + wait).await;
    }
}
