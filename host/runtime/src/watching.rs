//! Watching plugin files, for front ends and embedders.

use jaato_instances::PluginCopies;
use jaato_types::Error;

use crate::runtime::Runtime;

impl Runtime {
    /// Starts watching the plugins: replaced, added and removed files take effect in running
    /// sessions. Meant for processes that outlive a single task.
    ///
    /// The host checks a file before each call of its plugin, and all folders when a turn begins.
    /// The next call of a replaced plugin uses its new edition, in a worker unless that edition is
    /// trusted. The new instance starts from the state that the previous one saved, and calls in
    /// flight finish on the previous one. Changed tools are offered from the next turn on. An
    /// unusable file changes nothing. An event (`notice`) and the log explain why.
    pub async fn watch_plugins(&self) {
        let host = self.host();
        match host.setup.folders.cache_folder() {
            Ok(cache) => {
                host.plugins.instances.open_copies(PluginCopies::in_folder(cache));
                host.plugins.plugins.start_watching().await;
            }
            Err(error) => {
                host.log.write_line(
                    2,
                    "host",
                    &format!("cannot watch the plugin files for changes: {error}"),
                );
            }
        }
    }

    /// Reads the plugin files again and describes them again, even if the cache has them. The named
    /// plugin restarts with its next call, even if its file is unchanged, so this also recovers a
    /// disabled plugin. Returns the changes, one line each.
    ///
    /// # Errors
    /// If no plugin has this name, or plugins are not watched.
    pub async fn reload_plugins(&self, plugin: Option<&str>) -> Result<Vec<String>, Error> {
        self.host().plugins.describe_again(plugin).await
    }

    /// Returns why a plugin is used in another edition than its file, which cannot be used. Returns
    /// `None` if both are the same.
    pub fn kept_edition_reason(&self, plugin: &str) -> Option<String> {
        self.host().plugins.plugins.kept_reason(plugin)
    }
}
