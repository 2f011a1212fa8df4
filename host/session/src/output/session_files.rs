//! Remembers which output files a session made. A tool's result may name any path, and only these
//! are trusted to hold the whole output.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_types::{CallId, Result};
use parking_lot::Mutex;

use super::{OutputStore, OutputWriter};

/// How many paths are remembered, the newest ones. If an older result is truncated again, its text
/// is written to another file.
const PATHS_MAX: usize = 4096;

/// The output files of one session.
pub(crate) struct SessionOutputFiles {
    store: Arc<dyn OutputStore>,
    paths: Mutex<VecDeque<String>>,
}

impl SessionOutputFiles {
    /// Creates the files in `store`.
    pub(crate) fn new(store: Arc<dyn OutputStore>) -> Self {
        Self { store, paths: Mutex::default() }
    }
}

impl OutputStore for SessionOutputFiles {
    fn create<'a>(
        &'a self,
        call: &'a CallId,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn OutputWriter>>> {
        Box::pin(async move {
            let file = self.store.create(call, label).await?;
            let mut paths = self.paths.lock();
            if paths.len() >= PATHS_MAX {
                paths.pop_front();
            }
            paths.push_back(file.path());
            Ok(file)
        })
    }

    fn has_file(&self, path: &str) -> bool {
        self.paths.lock().iter().any(|made| made == path) || self.store.has_file(path)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::testing::MemoryOutputStore;

    #[test]
    fn newest_paths_are_remembered_up_to_the_limit() {
        let made = SessionOutputFiles::new(Arc::new(MemoryOutputStore::default()));
        let create = |number: usize| {
            let file = made.create(&CallId::new(number.to_string()), "output").now_or_never();
            file.unwrap().unwrap();
        };
        assert!(!made.has_file("/outputs/0-output"));
        (0..PATHS_MAX).for_each(create);
        assert!(made.has_file("/outputs/0-output"));
        create(PATHS_MAX);
        assert!(!made.has_file("/outputs/0-output") && made.has_file("/outputs/1-output"));
    }
}
