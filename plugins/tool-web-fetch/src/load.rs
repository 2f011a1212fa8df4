//! Loads a page: from the cache, after a check with the server, or from the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse};
use url::Url;

use crate::WebFetchState;
use crate::cache::{CacheHit, LoadedPage};
use crate::content::ContentKind;
use crate::robots::{self, RobotsRules};
use crate::settings::WebFetchSettings;

/// What a page may be, with preference: many servers of documentation have Markdown.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, \
                      application/json;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// The name of this program in `robots.txt`.
const PROGRAM: &str = "jaato";

/// The size from which a download shows its progress, in bytes.
const PROGRESS_FROM: u64 = 256 * 1024;

/// The options of a request.
#[derive(Debug, Default)]
pub struct LoadOptions {
    /// Additional headers.
    pub headers: BTreeMap<String, String>,
    /// Whether the cache is left out.
    pub no_cache: bool,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// Whether the user's proxy is left out.
    pub no_proxy: bool,
}

/// Loads a page. The body of a binary file is empty, except that of an image.
pub async fn load_page(
    cx: &Cx<WebFetchState>,
    url: &Url,
    options: &LoadOptions,
    settings: &WebFetchSettings,
) -> Result<Arc<LoadedPage>> {
    let key = url.as_str();
    let is_plain = options.headers.is_empty() && !options.insecure && !options.no_proxy;
    let use_cache = is_plain && !options.no_cache;
    let ttl = Duration::from_secs(settings.cache_ttl);
    let hit = if use_cache { cx.state().pages.lock().get_page(key, ttl) } else { None };
    let (known, checks) = match hit {
        Some(CacheHit::Fresh(page)) => return Ok(page),
        Some(CacheHit::Stale(page, checks)) => (Some(page), checks),
        None => (None, Vec::new()),
    };
    if settings.respect_robots_txt {
        check_robots(cx, url, options, settings).await?;
    }
    let mut request = page_request(cx, url, options, settings).header("accept", ACCEPT);
    for (name, value) in &options.headers {
        request = request.header(name, value);
    }
    for (name, value) in checks {
        request = request.header(name, value);
    }
    let response = request.send().await?;
    let page = match known {
        Some(page) if response.status() == 304 => page,
        _ => Arc::new(read_page(cx, response).await?),
    };
    if is_plain && page.status == 200 {
        cx.state().pages.lock().put_page(key, Arc::clone(&page));
    }
    Ok(page)
}

fn page_request(
    cx: &Cx<WebFetchState>,
    url: &Url,
    options: &LoadOptions,
    settings: &WebFetchSettings,
) -> HttpRequestBuilder {
    let mut request = cx.web(url.as_str()).timeout(settings.page_timeout());
    if options.insecure {
        request = request.insecure();
    }
    if options.no_proxy {
        request = request.no_proxy();
    }
    match &settings.user_agent {
        Some(user_agent) => request.header("user-agent", user_agent.as_str()),
        None => request,
    }
}

async fn read_page(cx: &Cx<WebFetchState>, mut response: HttpResponse) -> Result<LoadedPage> {
    let mut page = LoadedPage {
        url: response.url().to_owned(),
        status: response.status(),
        headers: response.headers().to_vec(),
        body: Vec::new(),
    };
    // Nothing else of an error or a redirect is shown.
    if page.status != 200 || ContentKind::from_page(&page).is_binary() {
        return Ok(page);
    }
    let length = page.header("content-length").and_then(|text| text.parse::<u64>().ok());
    let is_encoded = page.header("content-encoding").is_some();
    let total = length.filter(|_| !is_encoded).unwrap_or_default();
    let host = Url::parse(&page.url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let label = format!("loading from {}", host.unwrap_or_default());
    while let Some(piece) = response.next().await? {
        page.body.extend_from_slice(&piece);
        let done = page.body.len() as u64;
        let is_shown = done.max(total) >= PROGRESS_FROM;
        if is_shown && !cx.emit(&Delta::progress(label.as_str(), done, total)) {
            return Err(Error::cancelled());
        }
    }
    Ok(page)
}

/// Checks that the server's `robots.txt` allows a page. The rules are loaded once for each server.
async fn check_robots(
    cx: &Cx<WebFetchState>,
    url: &Url,
    options: &LoadOptions,
    settings: &WebFetchSettings,
) -> Result<()> {
    let origin = url.origin().ascii_serialization();
    let known = cx.state().robots.lock().get(&origin).cloned();
    let rules = match known {
        Some(rules) => rules,
        None => {
            let robots =
                url.join("/robots.txt").map_err(|error| Error::failed(error.to_string()))?;
            let rules = Arc::new(load_robots(cx, &robots, options, settings).await);
            cx.state().robots.lock().insert(origin, Arc::clone(&rules));
            rules
        }
    };
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    if rules.is_path_allowed(path) {
        return Ok(());
    }
    let text = format!(
        "the `robots.txt` of `{}` does not allow this page",
        url.host_str().unwrap_or_default()
    );
    Err(Error::new(ErrorKind::PermissionDenied, text)
        .with_hint("the user decides with `respect_robots_txt` whether that counts"))
}

async fn load_robots(
    cx: &Cx<WebFetchState>,
    url: &Url,
    options: &LoadOptions,
    settings: &WebFetchSettings,
) -> RobotsRules {
    let Ok(mut response) = page_request(cx, url, options, settings).send().await else {
        return RobotsRules::disallow_all();
    };
    match response.status() {
        200 => {}
        500.. => return RobotsRules::disallow_all(),
        _ => return RobotsRules::default(),
    }
    let mut text = Vec::new();
    while text.len() < robots::BYTES_MAX {
        match response.next().await {
            Ok(Some(piece)) => text.extend(piece),
            Ok(None) => break,
            Err(_) => return RobotsRules::disallow_all(),
        }
    }
    RobotsRules::parse_robots(&String::from_utf8_lossy(&text), PROGRAM)
}
