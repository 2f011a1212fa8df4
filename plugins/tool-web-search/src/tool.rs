//! The tool `web_search`.

use std::time::{Duration, Instant};

use jaato_plugin_sdk::object_environment::ObjectsAdd;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::text::visible_line;

use crate::WebSearchState;
use crate::answer::{ANSWER_BYTES_MAX, SearchFailure, SearchResult, parse_search_answer};
use crate::backend::QUERY_LETTERS_MAX;
use crate::choose::{ChosenBackend, WebSearchSettings, choose_backend};

/// Longest wait for a backend.
const WAIT: Duration = Duration::from_secs(10);

/// How long a backend is not asked after it took jaato for a robot. More requests would prolong the
/// block.
const BLOCKED_FOR: Duration = Duration::from_secs(60 * 60);

/// Find pages on the web. The results become objects with title, url, snippet and date.
#[derive(ToolInput)]
#[tool(
    name = "web_search",
    read_only,
    auto_approval,
    category = "web",
    example("what is new in Rust?", query = "Rust release notes")
)]
struct WebSearch {
    /// What to find.
    #[schemars(extend("x-jaato-touches" = { "text": "words to search by" }))]
    query: String,
    /// Maximum number of results.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<usize>,
}

impl Tool for WebSearch {
    type State = WebSearchState;

    async fn call(self, cx: &Cx<Self::State>) -> Result<Output> {
        let query = self.query.trim();
        if query.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "`query` is required"));
        }
        if query.chars().count() > QUERY_LETTERS_MAX {
            let text = format!("`query` has more than {QUERY_LETTERS_MAX} characters");
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let count = self.max_results.unwrap_or(10).clamp(1, 20);
        let settings: WebSearchSettings = cx.config().await?;
        let chosen = choose_backend(cx, &settings).await?;
        let mut results = run_search(cx, &chosen, query, count, settings.searxng_url()).await?;
        results.truncate(count);
        let title = chosen.backend.title;
        cx.notice(format!("{} results from {title}", results.len()));
        let mut answer = json!({ "query": query, "backend": title, "result_count": results.len() });
        if results.is_empty() {
            answer["message"] = "No results found for the query.".into();
            return Ok(Output::json(answer));
        }
        let metadata = json!({ "query": query, "backend": title, "source": "web" });
        let objects = ObjectsAdd {
            payload_type: Some("table".to_owned()),
            ..ObjectsAdd::from_objects(results.iter().map(result_json), metadata)?
        };
        let added = cx.objects().result(objects).await?;
        answer["references"] = json!(added.references);
        Ok(Output::json(answer))
    }
}

fn result_json(result: &SearchResult) -> Value {
    let SearchResult { title, url, snippet, date } = result;
    let mut object = json!({ "title": title, "url": url, "snippet": snippet });
    if !date.is_empty() {
        object["date"] = date.as_str().into();
    }
    object
}

async fn run_search(
    cx: &Cx<WebSearchState>,
    chosen: &ChosenBackend,
    query: &str,
    count: usize,
    searxng_url: &str,
) -> Result<Vec<SearchResult>> {
    let backend = &chosen.backend;
    let until = cx.state().blocked_until.lock().get(&chosen.name).copied();
    if until.is_some_and(|until| Instant::now() < until) {
        return Err(search_error(SearchFailure::Blocked, chosen));
    }
    let asked = backend.build_request(query, count, searxng_url, chosen.base.as_deref())?;
    let mut request = cx.http(asked.method, asked.url).body(asked.body).timeout(WAIT);
    for (name, value) in &asked.headers {
        request = request.header(name, value.as_str());
    }
    if !backend.key.is_empty() {
        request = request.required_credential(&backend.key);
    }
    let response = request.send().await?;
    let status = response.status();
    let retry_after = response.header("retry-after").map(str::to_owned);
    let body = response.bytes(ANSWER_BYTES_MAX).await?;
    let found = parse_search_answer(backend, status, retry_after.as_deref(), &body);
    if found == Err(SearchFailure::Blocked) {
        let until = Instant::now() + BLOCKED_FOR;
        cx.state().blocked_until.lock().insert(chosen.name.clone(), until);
    }
    found.map_err(|why| search_error(why, chosen))
}

/// Returns the error for a failed search.
fn search_error(why: SearchFailure, chosen: &ChosenBackend) -> Error {
    let (name, key) = (&chosen.backend.title, &chosen.backend.key);
    let unavailable = |text: String| Error::new(ErrorKind::Unavailable, text);
    match why {
        SearchFailure::Blocked => {
            unavailable(format!("{name} blocked the search because it takes jaato for a robot"))
                .with_hint(
                    "this is not an empty result; the user can set BRAVE_API_KEY, \
                            TAVILY_API_KEY or SEARXNG_URL",
                )
        }
        SearchFailure::RateLimited(seconds) => {
            let wait = seconds.map(|it| format!("; it asks to wait {it} s")).unwrap_or_default();
            unavailable(format!("{name} got too many searches{wait}")).temporary()
        }
        SearchFailure::QuotaSpent => {
            let text = format!("the account at {name} has no searches left");
            Error::new(ErrorKind::LimitReached, text)
        }
        SearchFailure::KeyRefused if key.is_empty() => {
            Error::new(ErrorKind::PermissionDenied, format!("{name} wants a key"))
        }
        SearchFailure::KeyRefused => {
            Error::new(ErrorKind::PermissionDenied, format!("{name} refused the key in `{key}`"))
        }
        SearchFailure::NotAllowed => unavailable(format!("{name} does not allow this search"))
            .with_hint("a SearXNG server needs `json` under `search.formats` in its settings"),
        SearchFailure::EnginesFailed(engines) => {
            unavailable(format!("the engines of {name} did not answer: {engines}")).temporary()
        }
        SearchFailure::Status(status) => {
            let error = unavailable(format!("{name} answered with the status {status}"));
            if status >= 500 { error.temporary() } else { error }
        }
        SearchFailure::Unreadable(reason) => {
            unavailable(format!("cannot read the answer of {name}: {}", visible_line(&reason, 200)))
        }
    }
}

tool!(WebSearch);
