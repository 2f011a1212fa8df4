//! Combines the memories of the workspace and of the user.

use std::path::Path;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::text::{truncate_bytes, truncate_chars};

use crate::file::MemoryFile;
use crate::queries::{self, MemoryMatch, MemoryQuery};
use crate::record::{MemoryRecord, MemoryScope, NewMemory};
use crate::search_terms::{any_word_query, fold_tag, tag_and_subject_words, unique_words};

/// The maximum number of memories listed before a prompt.
const TITLES_MAX: u32 = 5;
/// The maximum size of all lines before a prompt, in bytes. This is about 200 tokens.
const TITLES_BYTES_MAX: usize = 800;
/// The maximum length of one line, in bytes.
const TITLE_BYTES_MAX: usize = 240;

/// The files of both scopes, or the errors that prevent their use.
pub struct MemoryScopes {
    pub project: Result<MemoryFile>,
    pub universal: Result<MemoryFile>,
}

/// A scope's number of memories and its newest ones.
pub type ScopeSummary = (MemoryScope, (u32, Vec<MemoryRecord>));

/// The result from the scopes that can be read.
pub struct ScopesResult<T> {
    pub found: T,
    /// The errors of the other scopes.
    pub failed: Vec<Error>,
}

impl MemoryScopes {
    /// Asks the host for the folders.
    pub async fn open_scopes(home: &Home) -> Self {
        let named = |folder: Result<String>| folder.map(|it| MemoryFile::new(Path::new(&it)));
        Self {
            project: named(home.store().of_workspace().folder().await),
            universal: named(home.store().folder().await),
        }
    }

    /// Stores a memory and returns its id.
    ///
    /// # Errors
    /// An error if the scope's file cannot be written or is full.
    pub fn store_memory(&self, scope: MemoryScope, new: &NewMemory) -> Result<String> {
        self.scope_file(scope)?.write_in_transaction(|file| queries::insert_memory(file, new))
    }

    /// Finds memories by tags and words, and counts their use.
    ///
    /// # Errors
    /// An error if neither file can be read.
    pub fn retrieve_memories(
        &self,
        tags: &[String],
        count: u32,
    ) -> Result<ScopesResult<Vec<(MemoryScope, MemoryRecord)>>> {
        let wanted = MemoryQuery {
            tags: tags.iter().map(|tag| fold_tag(tag)).collect(),
            query: any_word_query(&unique_words(&tags.join(" "))),
            count,
        };
        let ScopesResult { found, mut failed } = self.find_in_scopes(&wanted, MemoryFile::clone)?;
        for scope in MemoryScope::ALL {
            let of_scope = found.iter().filter(|(of, _)| *of == scope);
            let ids: Vec<String> = of_scope.map(|(_, found)| found.memory.id.clone()).collect();
            if ids.is_empty() {
                continue;
            }
            // Return the memories even if their use cannot be counted, for example on a full disk.
            let counted = self
                .scope_file(scope)?
                .write_in_transaction(|file| queries::count_memory_uses(file, &ids));
            failed.extend(counted.err());
        }
        let used = |(scope, found): (MemoryScope, MemoryMatch)| {
            let usage_count = found.memory.usage_count.saturating_add(1);
            (scope, MemoryRecord { usage_count, ..found.memory })
        };
        Ok(ScopesResult { found: found.into_iter().map(used).collect(), failed })
    }

    /// Returns the lines before a prompt: the memories that may be relevant. Empty if there are
    /// none, or if others use the files for too long.
    ///
    /// # Errors
    /// An error if nothing is found and a file cannot be read.
    pub fn relevant_titles(&self, prompt: &str) -> Result<String> {
        let (tags, telling) = tag_and_subject_words(prompt);
        let query = match telling.is_empty() {
            true => any_word_query(&[]),
            // A content has many words, so one of them would nearly always match.
            false => format!("{{description tags}} : ({})", any_word_query(&telling)),
        };
        let wanted = MemoryQuery { tags, query, count: TITLES_MAX };
        let is_busy = |error: &Error| error.kind == ErrorKind::Unavailable;
        let found = match self.find_in_scopes(&wanted, MemoryFile::with_short_wait) {
            Ok(ScopesResult { found, failed }) if found.is_empty() => {
                // If there is nothing else to show, the user sees the error.
                let worst = failed.into_iter().find(|error| !is_busy(error));
                return worst.map_or(Ok(String::new()), Err);
            }
            Ok(ScopesResult { found, .. }) => found,
            Err(error) if is_busy(&error) => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        for (_, MemoryMatch { memory, .. }) in found {
            let line = format!("- [{}]: {}", memory.tags.join(", "), memory.description);
            let line = truncate_bytes(&line, TITLE_BYTES_MAX);
            if text.len() + line.len() + 1 > TITLES_BYTES_MAX - HEADING.len() {
                break;
            }
            text = format!("{text}\n{line}");
        }
        Ok(if text.is_empty() { text } else { format!("{HEADING}{text}") })
    }

    /// Counts memories and their tags.
    ///
    /// # Errors
    /// An error if neither file can be read.
    pub fn count_tags(&self) -> Result<ScopesResult<(u32, Vec<String>)>> {
        let ScopesResult { found, failed } = self.read_both_scopes(MemoryFile::clone, |file| {
            Ok((queries::newest_memories(file, 0)?.0, queries::list_tags(file)?))
        })?;
        let count = found.iter().map(|(_, (count, _))| count).sum();
        let mut tags: Vec<String> =
            found.into_iter().flat_map(|(_, (_, tags))| tags).map(|(tag, _)| tag).collect();
        tags.sort_unstable();
        tags.dedup();
        Ok(ScopesResult { found: (count, tags), failed })
    }

    /// Returns each scope's number of memories and its newest ones.
    ///
    /// # Errors
    /// An error if neither file can be read.
    pub fn list_scopes(&self, count: u32) -> Result<ScopesResult<Vec<ScopeSummary>>> {
        self.read_both_scopes(MemoryFile::clone, |file| queries::newest_memories(file, count))
    }

    /// Removes a memory from its scope.
    ///
    /// # Errors
    /// `not_found`, or `io` if the memory file cannot be read or written.
    pub fn remove_memory(&self, id: &str) -> Result<MemoryScope> {
        self.change_memory(id, queries::delete_memory)
    }

    /// Replaces the content of a memory.
    ///
    /// # Errors
    /// `not_found`, or the errors of the files.
    pub fn edit_memory(&self, id: &str, content: &str) -> Result<MemoryScope> {
        self.change_memory(id, |file, id| queries::replace_content(file, id, content))
    }

    fn change_memory(
        &self,
        id: &str,
        change: impl Fn(&rusqlite::Connection, &str) -> crate::file::MemoryFileResult<bool>,
    ) -> Result<MemoryScope> {
        let mut failed = None;
        for scope in MemoryScope::ALL {
            match self
                .scope_file(scope)
                .and_then(|file| file.change_existing(|file| change(file, id)))
            {
                Ok(true) => return Ok(scope),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        let shown = truncate_chars(id, 60);
        let none = || Error::new(ErrorKind::NotFound, format!("no memory has the id `{shown}`"));
        Err(failed.unwrap_or_else(|| none().with_hint("`memory list` shows all ids")))
    }

    fn find_in_scopes(
        &self,
        wanted: &MemoryQuery,
        with: impl Fn(&MemoryFile) -> MemoryFile,
    ) -> Result<ScopesResult<Vec<(MemoryScope, MemoryMatch)>>> {
        let ScopesResult { found, failed } =
            self.read_both_scopes(with, |file| queries::find_memories(file, wanted))?;
        let one = |(scope, found): (MemoryScope, Vec<MemoryMatch>)| {
            found.into_iter().map(move |it| (scope, it))
        };
        let mut found: Vec<(MemoryScope, MemoryMatch)> = found.into_iter().flat_map(one).collect();
        found.sort_by(|(_, one), (_, other)| {
            let tags = other.shared.cmp(&one.shared);
            let rank = || one.rank.total_cmp(&other.rank);
            tags.then_with(rank).then_with(|| other.memory.stored.cmp(&one.memory.stored))
        });
        found.truncate(wanted.count as usize);
        Ok(ScopesResult { found, failed })
    }

    /// Reads both files. An unreadable file does not hide the other one.
    fn read_both_scopes<T: Default>(
        &self,
        with: impl Fn(&MemoryFile) -> MemoryFile,
        work: impl Fn(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<ScopesResult<Vec<(MemoryScope, T)>>> {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for scope in MemoryScope::ALL {
            match self.scope_file(scope).and_then(|file| with(file).read_with(&work)) {
                Ok(read) => found.push((scope, read)),
                Err(error) => failed.push(error),
            }
        }
        if found.is_empty()
            && let Some(error) = failed.pop()
        {
            return Err(error);
        }
        Ok(ScopesResult { found, failed })
    }

    fn scope_file(&self, scope: MemoryScope) -> Result<&MemoryFile> {
        let file = match scope {
            MemoryScope::Project => &self.project,
            MemoryScope::Universal => &self.universal,
        };
        file.as_ref().map_err(Clone::clone)
    }
}

/// The heading of the lines before a prompt.
const HEADING: &str = "💡 **Available Memories** (use retrieve_memories to access):";
