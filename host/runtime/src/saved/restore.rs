//! Reads what a saved session needs to continue.

use std::collections::HashMap;
use std::sync::Arc;

use jaato_objects::ObjectEnvironment;
use jaato_session::{
    History, HistoryEntry, InterruptedCalls, MessageMark, SavedRecord, SavedRules, SavedState,
};
use jaato_sessions::{HistoryChange, ReplayedHistory, SessionStore, StoredRecord, record_type};
use jaato_types::{CallId, Frame, PluginName, Role, SessionId, ToolResult};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The content of a saved session.
#[derive(Debug, Default)]
pub struct RestoredSession {
    /// The conversation, as it was saved.
    pub record: SavedRecord,
    /// The conversation without turns that break an invariant, which only a damaged file has.
    pub history: History,
    /// The record before the last collection, without what was forgotten or cut off since.
    pub before_collection: Option<Vec<Arc<HistoryEntry>>>,
    /// The approval mode and the user's answers. `None` if they were never saved.
    pub rules: Option<SavedRules>,
    /// The model and the usage.
    pub state: SavedState,
    /// The objects that tools had shown to the model.
    pub objects: ObjectEnvironment,
    /// The states of plugins.
    pub plugins: HashMap<PluginName, Vec<u8>>,
    /// What is known of open calls.
    pub interrupted: InterruptedCalls,
    /// The items that could not be restored, one line each.
    pub problems: Vec<String>,
}

/// Restores a session from its effective records. Attachments come from the store.
pub fn restore_session(
    store: &SessionStore,
    id: &SessionId,
    records: &[StoredRecord],
) -> RestoredSession {
    let mut restored = RestoredSession::default();
    let mut entries = ReplayedHistory::default();
    let mut damaged = 0;
    for stored in records {
        let attachment = |name: &str| store.read_attachment(id, name).ok().flatten();
        let applied = entries
            .apply_record(stored, read_history_entry)
            .and_then(|()| restored.apply_record(stored, &attachment));
        damaged += usize::from(applied.is_none());
        if stored.record.kind == record_type::COLLECTION {
            restored.before_collection = Some(entries.kept_entries());
        } else if applied.is_some() {
            restored.follow_collection(stored);
        }
    }
    let (kept, forgotten) = entries.into_kept_and_forgotten();
    restored.record = SavedRecord::from_entries(kept);
    if damaged > 0 {
        let records = if damaged == 1 { "record is" } else { "records are" };
        restored.problems.push(format!("{damaged} {records} damaged and were skipped"));
    }
    let (history, lost) = History::restore_whole_turns(restored.record.entries());
    if lost > 0 {
        // The places of its entries are others.
        restored.before_collection = None;
    }
    let is_turn = |entry: &&Arc<HistoryEntry>| {
        entry.message.is_prompt() && entry.mark != Some(MessageMark::Unsent)
    };
    restored.history =
        history.with_forgotten_turns(forgotten.iter().filter(is_turn).count() as u64);
    if lost > 0 {
        let messages = if lost == 1 { "message" } else { "messages" };
        restored.problems.push(format!(
            "{lost} {messages} of damaged turns were left out; `jaato session show {id}` shows them"
        ));
    }
    restored
}

impl RestoredSession {
    /// Removes entries from the record before the last collection that a later change removes.
    fn follow_collection(&mut self, stored: &StoredRecord) {
        let Some(before) = &mut self.before_collection else { return };
        match stored.record.history_change().flatten() {
            Some(HistoryChange::Forget { index, count }) => {
                let end = index.saturating_add(count).min(before.len());
                before.drain(index.min(end)..end);
            }
            Some(HistoryChange::Cut { length }) => before.truncate(length),
            Some(HistoryChange::Append(_) | HistoryChange::Replace { .. }) | None => {}
        }
    }

    /// Applies a record to everything but the history. Returns `None` if it does not fit.
    fn apply_record(
        &mut self,
        stored: &StoredRecord,
        attachment: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<()> {
        let data = &stored.record.data;
        if let Some(Some(HistoryChange::Append(entry))) = stored.record.history_change()
            && parse_data(&entry["role"]) == Some(Role::Model)
        {
            // The known outcomes belong to the calls of earlier answers.
            self.interrupted = InterruptedCalls::default();
        }
        match stored.record.kind.as_str() {
            record_type::RULES => {
                self.rules = Some(parse_data(data)?);
                Some(())
            }
            record_type::STATE => {
                self.state = parse_data(data)?;
                Some(())
            }
            record_type::OBJECTS => {
                let bytes = data["bytes"].as_str().map_or(Some(Vec::new()), attachment)?;
                let objects = std::mem::take(&mut self.objects);
                self.objects = match objects.clone().with_changes(&data["changes"], &bytes) {
                    Ok(changed) => changed,
                    Err(_) => {
                        self.objects = objects;
                        return None;
                    }
                };
                Some(())
            }
            record_type::PLUGIN_STATE => {
                let state = match data["attachment"].as_str() {
                    Some(name) => attachment(name)?,
                    None => Frame::write(&data["json"]).ok()?,
                };
                self.plugins.insert(parse_data(&data["plugin"])?, state);
                Some(())
            }
            record_type::CALL_STARTED => {
                let id: CallId = parse_data(&data["call_id"])?;
                self.interrupted.started.insert(id);
                Some(())
            }
            record_type::CALL_ENDED => {
                let result: ToolResult = parse_data(data)?;
                self.interrupted.results.insert(result.call_id.clone(), result);
                Some(())
            }
            // Other records do not matter to a session that continues.
            _ => Some(()),
        }
    }
}

/// Reads an entry of a saved history. Returns `None` if it is damaged.
pub fn read_history_entry(data: &Value) -> Option<Arc<HistoryEntry>> {
    parse_data(data)
}

fn parse_data<T: DeserializeOwned>(data: &Value) -> Option<T> {
    T::deserialize(data).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jaato_policy::PolicyMode;
    use jaato_types::Frame;
    use serde_json::json;

    use super::*;

    /// A session of version 1 whose process ended while calls ran.
    const SESSION: &str = "20261128-121315-m4x7wa";

    #[test]
    fn session_of_version_1_is_restored_with_its_state() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR"));
        let store = SessionStore::new(fixtures.join("../sessions/tests/fixtures/version-1"));
        let id = SessionId::new(SESSION);
        let records = store.read_session(&id).unwrap().read_rest().unwrap();
        let restored = restore_session(&store, &id, &records);
        assert_eq!(restored.history.entries().len(), 2);
        assert_eq!(restored.problems, [""; 0]);
        assert_eq!(restored.rules.as_ref().unwrap().mode, PolicyMode::AcceptEdits);
        assert_eq!(
            (restored.state.model.as_str(), restored.state.usage.tokens),
            ("openai/test", 120)
        );
        assert_eq!(restored.state.background, ["task_1 (cli_based_tool)"]);
        let moons = restored.objects.get_objects("find_rows", None).unwrap();
        assert_eq!(moons[1]["name"], "Deimos");
        assert_eq!(restored.objects.hidden_values().len(), 1);
        let clock = &restored.plugins[&PluginName::from("tool-clock")];
        assert_eq!(Frame::read::<Value>(clock).unwrap(), json!({ "alarm": 7 }));
        let InterruptedCalls { started, results } = restored.interrupted;
        assert!(started.contains(&CallId::from("call_2")) && started.len() == 1);
        assert_eq!(results[&CallId::from("call_1")].content["rows"], 2);
    }

    #[test]
    fn record_that_does_not_fit_is_left_out_and_counted() {
        let store = SessionStore::new("/nonexistent");
        let record = |kind: &str, data| StoredRecord {
            seq: 1,
            at_ms: 0,
            epoch: 1,
            record: jaato_sessions::SessionRecord::new(kind, data),
        };
        let records = [
            record(record_type::MESSAGE, json!({ "role": "user", "parts": "text" })),
            record(record_type::CHANGE, json!({ "change": "cut", "length": 9 })),
            record(record_type::PLUGIN_STATE, json!({ "plugin": "a", "attachment": "b" })),
            record("of_a_later_version", json!(1)),
        ];
        let restored = restore_session(&store, &SessionId::new("a"), &records);
        assert_eq!(restored.problems, ["3 records are damaged and were skipped"]);
    }
}
