//! A folder with files, and a session that works in it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ask::{Form, FormAnswer};
use jaato_plugin_sdk::types::file_change::FileChange;
use jaato_plugin_sdk::types::service::{FolderAnswer, SessionFacts};
use jaato_plugin_sdk::types::store::FOLDER;
use jaato_plugin_sdk::types::{Delta, Error};
use jaato_plugin_testkit::{FakeHost, FakeInstance, FakeServiceReply};
use tempfile::TempDir;

/// A session in its own folder.
pub struct EditFixture {
    folder: TempDir,
    /// The folder in which the plugin stores the history.
    pub history: TempDir,
    host: FakeHost,
    forms: Arc<Mutex<Vec<Form>>>,
}

impl EditFixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let working_directory = folder.path().canonicalize().unwrap().display().to_string();
        let session_id = "s1".to_owned();
        let facts = SessionFacts { working_directory, session_id, ..SessionFacts::default() };
        let history = tempfile::tempdir().unwrap();
        let of_workspace = history.path().display().to_string();
        let host = FakeHost::new(tool_file_edit::__jaato::MODULE)
            .with_session(facts)
            .with_service(FOLDER, move |_| {
                FakeServiceReply::from_value(&FolderAnswer::new(of_workspace.clone()))
            });
        Self { folder, history, host, forms: Arc::default() }
    }

    /// Creates a session whose user gives this answer to each form.
    pub fn with_form_answer(answer: &'static str) -> Self {
        let desk = Self::new();
        let forms = Arc::clone(&desk.forms);
        let host = desk.host.with_person(move |form| {
            forms.lock().unwrap().push(form.clone());
            let name = form.fields[0].name.clone();
            FormAnswer::answered([(name, json!(answer))].into())
        });
        Self { host, ..desk }
    }

    /// Returns the forms that the user saw.
    pub fn shown_forms(&self) -> Vec<Form> {
        self.forms.lock().unwrap().clone()
    }

    /// Answers a service instead of the host.
    pub fn with_service(
        self,
        operation: &str,
        answer: impl Fn() -> FakeServiceReply + Send + Sync + 'static,
    ) -> Self {
        Self { host: self.host.with_service(operation, move |_| Ok(answer())), ..self }
    }

    /// Lets a service fail.
    pub fn with_failing_service(self, operation: &str, error: Error) -> Self {
        Self { host: self.host.with_service(operation, move |_| Err(error.clone())), ..self }
    }

    pub fn with_file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.write_file(name, bytes);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write_file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Returns the bytes of a file as text, or `-` if it does not exist.
    pub fn file_text(&self, name: &str) -> String {
        let bytes = fs::read(self.path(name)).unwrap_or_else(|_| b"-".to_vec());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[track_caller]
    pub fn call_tool(&self, tool: &str, arguments: Value) -> Value {
        match self.host.call(tool, arguments.clone()) {
            Ok(output) => Value::Object(output.content),
            Err(error) => panic!("{tool}({arguments}): {error:?}"),
        }
    }

    #[track_caller]
    pub fn call_refused_tool(&self, tool: &str, arguments: Value) -> Error {
        match self.host.call(tool, arguments.clone()) {
            Ok(output) => panic!("{tool}({arguments}) gives {:?}", output.content),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub fn preview_call(&self, tool: &str, arguments: Value) -> Preview {
        self.instance().preview(tool, arguments).unwrap()
    }

    /// Returns the file changes that a call reports to front ends.
    pub fn reported_changes(&self, tool: &str, arguments: Value) -> Vec<FileChange> {
        let finished = self.instance().run(tool, arguments);
        finished.result.unwrap();
        let change = |delta| match delta {
            Delta::FileChanged(change) => Some(change),
            _ => None,
        };
        finished.deltas.into_iter().filter_map(change).collect()
    }

    #[track_caller]
    pub fn read_file_text(&self, path: &str) -> String {
        let result = self.call_tool("readFile", json!({ "path": path }));
        result["result"].as_str().unwrap().to_owned()
    }

    pub fn host(&self) -> &FakeHost {
        &self.host
    }

    pub fn instance(&self) -> &FakeInstance {
        self.host.instance().unwrap()
    }
}
