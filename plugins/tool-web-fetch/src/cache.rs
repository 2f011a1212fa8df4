//! The pages that a session has read, so that it need not load them again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum number of pages.
const PAGES_MAX: usize = 50;

/// The maximum size of all bodies, in bytes.
const BYTES_MAX: usize = 20 * 1024 * 1024;

/// A loaded page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedPage {
    /// The URL that answered.
    pub url: String,
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body. Empty if it was not read.
    pub body: Vec<u8>,
}

impl LoadedPage {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The pages, oldest first.
#[derive(Debug, Default)]
pub struct PageCache {
    pages: VecDeque<CachedPage>,
}

#[derive(Debug)]
struct CachedPage {
    /// The URL that was requested.
    key: String,
    page: Arc<LoadedPage>,
    checked: Instant,
}

/// A page in the cache.
pub enum CacheHit {
    /// The page may be used as it is.
    Fresh(Arc<LoadedPage>),
    /// The page must be checked first. These headers do that.
    Stale(Arc<LoadedPage>, Vec<(&'static str, String)>),
}

impl PageCache {
    /// Returns a page.
    pub fn get_page(&self, key: &str, ttl: Duration) -> Option<CacheHit> {
        let found = self.pages.iter().find(|cached| cached.key == key)?;
        let page = Arc::clone(&found.page);
        if found.checked.elapsed() < ttl {
            return Some(CacheHit::Fresh(page));
        }
        let checks = [("if-none-match", "etag"), ("if-modified-since", "last-modified")];
        let headers = checks.into_iter().filter_map(|(check, header)| {
            page.header(header).map(|value| (check, value.to_owned()))
        });
        let headers: Vec<_> = headers.collect();
        (!headers.is_empty()).then_some(CacheHit::Stale(page, headers))
    }

    /// Stores a page, or notes that it was checked.
    pub fn put_page(&mut self, key: &str, page: Arc<LoadedPage>) {
        self.pages.retain(|cached| cached.key != key);
        if page.body.len() > BYTES_MAX {
            return;
        }
        self.pages.push_back(CachedPage { key: key.to_owned(), page, checked: Instant::now() });
        while self.pages.len() > PAGES_MAX || self.cached_bytes() > BYTES_MAX {
            self.pages.pop_front();
        }
    }

    fn cached_bytes(&self) -> usize {
        self.pages.iter().map(|cached| cached.page.body.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn test_page(headers: &[(&str, &str)], bytes: usize) -> Arc<LoadedPage> {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let url = "https://a.example/".to_owned();
        Arc::new(LoadedPage { url, status: 200, headers: headers.collect(), body: vec![0; bytes] })
    }

    #[test]
    fn fresh_page_is_used_and_a_stale_one_is_checked() {
        let mut cache = PageCache::default();
        cache.put_page("a", test_page(&[("etag", "\"1\""), ("last-modified", "Mon")], 1));
        cache.put_page("b", test_page(&[], 1));
        assert!(matches!(cache.get_page("a", LONG), Some(CacheHit::Fresh(_))));
        let Some(CacheHit::Stale(_, headers)) = cache.get_page("a", Duration::ZERO) else {
            panic!()
        };
        let expected = [("if-none-match", "\"1\""), ("if-modified-since", "Mon")];
        assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
        // Without a mark, the page must be loaded again.
        assert!(
            cache.get_page("b", Duration::ZERO).is_none() && cache.get_page("c", LONG).is_none()
        );
    }

    #[test]
    fn oldest_pages_are_dropped_beyond_the_limits() {
        let mut cache = PageCache::default();
        for number in 0..=PAGES_MAX {
            cache.put_page(&number.to_string(), test_page(&[], 1));
        }
        assert!(cache.get_page("0", LONG).is_none() && cache.get_page("1", LONG).is_some());
        cache.put_page("large", test_page(&[], BYTES_MAX));
        assert!(cache.get_page("50", LONG).is_none() && cache.get_page("large", LONG).is_some());
        cache.put_page("too large", test_page(&[], BYTES_MAX + 1));
        assert!(
            cache.get_page("too large", LONG).is_none() && cache.get_page("large", LONG).is_some()
        );
    }
}
