//! Asks providers about a model's context window and accepted media types while the session sends
//! its requests, and keeps the answers in the cache folder for a while.
//!
//! The cache is best effort: if it cannot be read or written, the host asks again. Each entry
//! belongs to one plugin's settings, because a model of the same name on another server is a
//! different model.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use jaato_instances::{CallSite, DeltaCallback, FacetRequest, clean_model, invalid_answer_error};
use jaato_session::Cancel;
use jaato_types::{Error, ErrorKind, Frame, ModelId, ModelInfo, PluginName, Price};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::host::RuntimeHost;

/// How long an entry is valid. A server may be restarted with another context window.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Maximum number of cached models. The oldest entries are removed first.
const ENTRIES_MAX: usize = 200;

/// Maximum size of a cache file to read, in bytes: far more than [`ENTRIES_MAX`] entries need.
const CACHE_BYTES_MAX: u64 = 256 * 1024;

/// The facts that the provider reported about a model, and the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct CachedModelInfo {
    context_limit: Option<u64>,
    accepts: Option<Vec<String>>,
    #[serde(default)]
    price: Option<Price>,
    told_at_s: u64,
}

/// Asks a session's provider about its model. Returns `None` if the provider reports nothing.
pub fn ask_about_model(
    host: Arc<RuntimeHost>,
    plugin: PluginName,
    model: &ModelId,
    site: CallSite,
) -> BoxFuture<'static, Option<ModelInfo>> {
    let model = model.clone();
    let cache = host.setup.folders.cache_folder().ok().map(|folder| folder.join("models.json"));
    let key = provider_settings(&host, &plugin, site.provider.as_ref())
        .map(|settings| cache_key(&plugin, &model, &settings));
    Box::pin(async move {
        if let (Some(cache), Some(key)) = (&cache, &key)
            && let Some(entry) = read_cache(cache).get(key).filter(|entry| is_fresh(entry, now_s()))
        {
            return Some(entry.info(&model));
        }
        let infos = match ask_for_models(&host, plugin.as_str(), site).await {
            Ok(infos) => infos,
            // The request itself will report what is wrong with the server.
            Err(error) => {
                let text = format!("cannot get information about `{model}`: {error}");
                host.log.write_line(3, "host", &text);
                return None;
            }
        };
        let info = find_model_info(&infos, &model)?.clone();
        let ModelInfo { context_limit, accepts, price, .. } = info.clone();
        let entry = CachedModelInfo { context_limit, accepts, price, told_at_s: now_s() };
        if let (Some(cache), Some(key)) = (&cache, key)
            && let Err(error) = store_in_cache(cache, key, entry)
        {
            host.log.write_line(3, "host", &format!("cannot write `{}`: {error}", cache.display()));
        }
        Some(info)
    })
}

impl CachedModelInfo {
    fn info(&self, model: &ModelId) -> ModelInfo {
        let name = model.split().map_or(model.as_str(), |(_, name)| name);
        let (accepts, price) = (self.accepts.clone(), self.price.clone());
        ModelInfo { context_limit: self.context_limit, accepts, price, ..ModelInfo::new(name) }
    }
}

/// Returns the settings as the plugin sees them, or `None` if the plugin cannot be used.
fn provider_settings(
    host: &RuntimeHost,
    plugin: &PluginName,
    provider: Option<&Arc<str>>,
) -> Option<Arc<Value>> {
    let catalog = host.plugins.plugins.current();
    let entry = catalog.registry.plugin(plugin.as_str())?;
    host.services.plugin_settings(entry, provider, catalog.edition(plugin.as_str()).number)
}

/// Asks a plugin for its provider's models.
pub async fn ask_for_models(
    host: &RuntimeHost,
    plugin: &str,
    site: CallSite,
) -> Result<Vec<ModelInfo>, Error> {
    let (nothing, quiet): (_, DeltaCallback) = (Frame::empty(), Arc::new(|_| {}));
    let cancel = Cancel::new();
    let asked =
        host.plugins.call_plugin(plugin, FacetRequest::Models, site, nothing, &quiet, &cancel);
    let mut infos: Vec<ModelInfo> =
        Frame::read(&asked.await?).map_err(invalid_answer_error(plugin))?;
    for info in &mut infos {
        clean_model(info, |text| host.plugins.without_secrets(plugin, text));
    }
    Ok(infos)
}

/// Finds a model in its provider's list. Also matches the names that servers use: Ollama appends
/// `:latest`, Google prepends `models/`.
pub fn find_model_info<'a>(infos: &'a [ModelInfo], model: &ModelId) -> Option<&'a ModelInfo> {
    let (_, name) = model.split()?;
    let by = |is_it: &dyn Fn(&str) -> bool| infos.iter().find(|info| is_it(&info.name));
    by(&|listed| listed == name)
        .or_else(|| by(&|listed| listed.strip_suffix(":latest") == Some(name)))
        .or_else(|| by(&|listed| listed.strip_prefix("models/") == Some(name)))
}

/// Returns the cache key of a server's model. The settings identify the server but may contain
/// private values, so the key holds only their hash.
fn cache_key(plugin: &PluginName, model: &ModelId, settings: &Value) -> String {
    let hash = Sha256::digest(settings.to_string());
    let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{plugin} {model} {hash}")
}

fn is_fresh(entry: &CachedModelInfo, now_s: u64) -> bool {
    // A time in the future means that the clock was set back.
    now_s.checked_sub(entry.told_at_s).is_some_and(|age_s| age_s < LIFETIME.as_secs())
}

fn read_cache(cache: &Path) -> BTreeMap<String, CachedModelInfo> {
    let text = jaato_places::read_own_file(cache, CACHE_BYTES_MAX).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Stores an entry. If two hosts write at the same time, the later host's entries win.
fn store_in_cache(cache: &Path, key: String, entry: CachedModelInfo) -> std::io::Result<()> {
    let mut entries = read_cache(cache);
    entries.retain(|_, known| is_fresh(known, entry.told_at_s));
    while entries.len() >= ENTRIES_MAX {
        let oldest = entries.iter().min_by_key(|(_, entry)| entry.told_at_s);
        let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
        entries.remove(&oldest);
    }
    entries.insert(key, entry);
    let folder: PathBuf = cache.parent().map(Path::to_owned).unwrap_or_default();
    jaato_places::make_own_folder(&folder)?;
    // The file is private, and the rename ensures that no reader sees half of it.
    let mut beside = tempfile::Builder::new().prefix(".models-").tempfile_in(&folder)?;
    beside.write_all(&serde_json::to_vec(&entries)?)?;
    beside.persist(cache)?;
    Ok(())
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the error for a model that its provider does not list.
pub fn model_not_offered_error(model: &ModelId) -> Error {
    let text = format!("`{model}` is the configured model, but its provider does not offer it");
    Error::new(ErrorKind::Configuration, text).with_hint("`jaato model list` lists the models")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_info(name: &str) -> ModelInfo {
        ModelInfo {
            name: name.to_owned(),
            title: String::new(),
            context_limit: None,
            asset: None,
            ..ModelInfo::default()
        }
    }

    #[test]
    fn model_is_found_under_the_name_variants_of_servers() {
        let infos = ["a:latest", "a", "models/b", "c:latest", "d:7b"].map(sample_info);
        let found = |name: &str| {
            find_model_info(&infos, &ModelId::new(format!("openai/{name}")))
                .map(|info| info.name.as_str())
        };
        assert_eq!(
            (found("a"), found("b"), found("c")),
            (Some("a"), Some("models/b"), Some("c:latest"))
        );
        assert_eq!((found("d"), found("a:latest"), found("")), (None, Some("a:latest"), None));
    }

    #[test]
    fn cached_model_info_is_valid_for_one_hour_and_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("not/there/models.json");
        let (plugin, model) = (PluginName::from("provider-x"), ModelId::from("x/y"));
        let key_at =
            |url: &str| cache_key(&plugin, &model, &json!({ "base_url": url, "k": "secret" }));
        let accepts = Some(vec!["image/png".to_owned()]);
        let price = Some(Price { input: 1.0, output: 2.5, ..Price::default() });
        let told =
            CachedModelInfo { context_limit: Some(4_096), accepts, price, told_at_s: now_s() };
        store_in_cache(&cache, key_at("http://one"), told.clone()).unwrap();
        let entries = read_cache(&cache);
        let entry = entries[&key_at("http://one")].clone();
        assert_eq!((&entry, entries.get(&key_at("http://two"))), (&told, None));
        let info = entry.info(&model);
        assert_eq!((info.name.as_str(), info.context_limit), ("y", Some(4_096)));
        assert!(!std::fs::read_to_string(&cache).unwrap().contains("secret"));
        let told = entry.told_at_s;
        assert!(is_fresh(&entry, told) && is_fresh(&entry, told + 3_599));
        assert!(!is_fresh(&entry, told + 3_600) && !is_fresh(&entry, told - 1));
    }

    #[test]
    fn damaged_model_cache_counts_as_empty_and_full_cache_drops_the_oldest() {
        let entry = |told_at_s| CachedModelInfo { told_at_s, ..CachedModelInfo::default() };
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("models.json");
        std::fs::write(&cache, "{").unwrap();
        let full: BTreeMap<String, CachedModelInfo> =
            (0..ENTRIES_MAX as u64).map(|at| (format!("{at}"), entry(now_s() - at))).collect();
        assert_eq!(read_cache(&cache), BTreeMap::new());
        std::fs::write(&cache, serde_json::to_vec(&full).unwrap()).unwrap();
        store_in_cache(&cache, "new".to_owned(), entry(now_s())).unwrap();
        let entries = read_cache(&cache);
        assert_eq!(entries.len(), ENTRIES_MAX);
        let oldest = format!("{}", ENTRIES_MAX - 1);
        assert!(entries.contains_key("new") && !entries.contains_key(&oldest));
    }
}
