//! Finds the session that a user means.

use jaato_types::SessionId;

use crate::error::SessionStoreError;
use crate::store::SessionStore;

/// Fewest characters of a part of an id. Fewer would often fit a session that the user does not
/// mean.
const PART_CHARS_MIN: usize = 4;

/// The most candidates that an error lists.
const CANDIDATES_MAX: usize = 5;

impl SessionStore {
    /// Finds a session by its id, or by at least four characters that only one id has at its start,
    /// at its end, or at the start of its last part: `k3f9` fits `20261128-121314-k3f9qz`.
    ///
    /// # Errors
    /// If there is no such session, or more than one.
    pub fn find_session(&self, text: &str) -> Result<SessionId, SessionStoreError> {
        let exact = SessionId::new(text);
        if self.existing_folder(&exact).is_ok() {
            return Ok(exact);
        }
        if text.chars().count() < PART_CHARS_MIN {
            let (part, least) = (text.to_owned(), PART_CHARS_MIN);
            return Err(SessionStoreError::PartTooShort { part, least });
        }
        let fits = |id: &str| {
            let last = id.rsplit('-').next().unwrap_or_default();
            id.starts_with(text) || id.ends_with(text) || last.starts_with(text)
        };
        let mut found = self.session_ids_matching(fits)?;
        match found.len() {
            0 => Err(SessionStoreError::NotFound(text.to_owned())),
            1 => Ok(found.remove(0)),
            count => {
                found.sort_unstable_by(|one, other| other.as_str().cmp(one.as_str()));
                let shown = found.iter().take(CANDIDATES_MAX);
                let candidates = shown.map(|id| id.as_str().to_owned()).collect();
                Err(SessionStoreError::Ambiguous { part: text.to_owned(), candidates, count })
            }
        }
    }
}
