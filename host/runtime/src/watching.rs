//! What a front end or an embedder has of plugins that are watched.

use jaato_instances::Copies;
use jaato_types::Error;

use crate::runtime::Runtime;

impl Runtime {
    /// Watches the plugins from here on: what is replaced, added or removed takes effect while
    /// sessions go on. For whatever lives longer than one task.
    ///
    /// A file is looked at before each call of its plugin, and all folders when a turn begins. A
    /// plugin that was replaced is called in its new edition, in a worker unless that is trusted;
    /// its instance is made from what the one before saved, on which calls in flight end. Tools
    /// that changed are offered from the next turn on. What cannot be used changes nothing, and an
    /// event (`notice`) and the log say why.
    pub async fn watch_plugins(&self) {
        let host = self.host();
        match host.setup.folders.cache() {
            Ok(cache) => {
                host.plugins.instances.open_copies(Copies::below(cache));
                host.plugins.plugins.watch().await;
            }
            Err(error) => {
                host.log.line(2, "host", &format!("plugins are not watched: {error}"));
            }
        }
    }

    /// Looks at the plugins' files now and describes them again, whatever the cache holds. The one
    /// that is named begins anew with its next call, also where its file is the same: so one can be
    /// had back that is not run any more. Returns what changed, a line each.
    ///
    /// # Errors
    /// When there is no plugin of that name, or plugins are not watched.
    pub async fn reload_plugins(&self, plugin: Option<&str>) -> Result<Vec<String>, Error> {
        self.host().plugins.look_again(plugin).await
    }

    /// Returns why a plugin is used in another edition than that of its file: that one cannot be
    /// used. None where it is the same.
    pub fn why_kept(&self, plugin: &str) -> Option<String> {
        self.host().plugins.plugins.kept(plugin)
    }
}
