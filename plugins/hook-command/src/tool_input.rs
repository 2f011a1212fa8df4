//! Tool calls as published hook scripts expect them: `Bash` with `command`, `Edit` with
//! `file_path`, and changed inputs as arguments of jaato's tools again.
//!
//! A call that touches several files is seen once for each file, so that a script that reads
//! `file_path` sees every one of them.

use std::path::Path;

use jaato_plugin_sdk::prelude::{Value, json};
use jaato_plugin_sdk::serde_json::Map;

/// A tool call as scripts see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInput {
    /// The name of the tool: `Bash`.
    pub name: String,
    /// The arguments, by the names that scripts read.
    pub input: Value,
    /// How a changed input becomes arguments again.
    form: InputForm,
    /// Whether the file is gone after the call.
    pub is_removal: bool,
}

/// The relation between a script's input and the arguments of the call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum InputForm {
    /// The input is the arguments.
    Same,
    /// The arguments under other names.
    Renamed(&'static ToolNames),
    /// A part of the call, which cannot be changed on its own.
    Part,
}

/// The names of a tool and its arguments, in jaato and in scripts.
#[derive(Debug, PartialEq)]
struct ToolNames {
    jaato: &'static str,
    script: &'static str,
    fields: &'static [(&'static str, &'static str, FieldForm)],
}

/// How the value of an argument differs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FieldForm {
    Same,
    /// Scripts get an absolute path.
    Path,
    /// Scripts get milliseconds.
    Seconds,
}

use FieldForm::{Path as FilePath, Same, Seconds};

const WHOLE_FILE: &ToolNames = &ToolNames {
    jaato: "updateFile",
    script: "Write",
    fields: &[("path", "file_path", FilePath), ("new_content", "content", Same)],
};

const TOOLS: &[ToolNames] = &[
    ToolNames {
        jaato: "cli_based_tool",
        script: "Bash",
        fields: &[("command", "command", Same), ("timeout_seconds", "timeout", Seconds)],
    },
    ToolNames { jaato: "shell_spawn", script: "Bash", fields: &[("command", "command", Same)] },
    ToolNames { jaato: "shell_input", script: "Bash", fields: &[("input", "command", Same)] },
    ToolNames { jaato: "readFile", script: "Read", fields: &[("path", "file_path", FilePath)] },
    ToolNames {
        jaato: "writeNewFile",
        script: "Write",
        fields: &[("path", "file_path", FilePath), ("content", "content", Same)],
    },
    ToolNames {
        jaato: "updateFile",
        script: "Edit",
        fields: &[
            ("path", "file_path", FilePath),
            ("old", "old_string", Same),
            ("new", "new_string", Same),
        ],
    },
    ToolNames { jaato: "glob_files", script: "Glob", fields: &[("root", "path", FilePath)] },
    ToolNames {
        jaato: "grep_content",
        script: "Grep",
        fields: &[("path", "path", FilePath), ("file_glob", "glob", Same)],
    },
    ToolNames { jaato: "web_fetch", script: "WebFetch", fields: &[] },
    ToolNames { jaato: "web_search", script: "WebSearch", fields: &[] },
    ToolNames {
        jaato: "spawn_subagent",
        script: "Task",
        fields: &[("task", "prompt", Same), ("profile", "subagent_type", Same)],
    },
];

/// Returns a call as scripts see it: usually one input, and one for each file if the call touches
/// several. `folder` is the folder in which relative paths begin.
pub fn tool_inputs(tool: &str, arguments: &Value, folder: &Path) -> Vec<ToolInput> {
    let parts = inputs_per_file(tool, arguments, folder);
    if !parts.is_empty() {
        return parts;
    }
    let is_whole_file = tool == WHOLE_FILE.jaato && arguments["new_content"].is_string();
    let names = match is_whole_file {
        true => Some(WHOLE_FILE),
        false => TOOLS.iter().find(|names| names.jaato == tool),
    };
    vec![match names {
        None => ToolInput {
            name: tool.to_owned(),
            input: arguments.clone(),
            form: InputForm::Same,
            is_removal: false,
        },
        Some(names) => ToolInput {
            name: names.script.to_owned(),
            input: renamed_input(names, arguments, folder),
            form: InputForm::Renamed(names),
            is_removal: false,
        },
    }]
}

impl ToolInput {
    /// Returns the arguments of the call after a script changed the input. Fields that the script
    /// leaves out keep their values.
    ///
    /// # Errors
    /// A text for users and models, if the change cannot be applied to the call.
    pub fn changed_arguments(&self, arguments: &Value, changed: &Value) -> Result<Value, String> {
        let Value::Object(changed) = changed else {
            return Err("its `updatedInput` is not an object".to_owned());
        };
        let mut result = arguments.as_object().cloned().unwrap_or_default();
        for (key, value) in changed {
            if self.input.get(key) == Some(value) {
                continue;
            }
            if self.form == InputForm::Part {
                return Err(format!("jaato cannot change `{key}` of a part of this call"));
            }
            let (name, value) = match self.form {
                InputForm::Renamed(names) => names.to_tool_argument(key, value),
                InputForm::Same | InputForm::Part => (key.as_str(), value.clone()),
            };
            if name == "command" {
                // They are in the command that the script saw.
                result.remove("args");
            }
            if value.is_null() {
                result.remove(name)
            } else {
                result.insert(name.into(), value)
            };
        }
        Ok(Value::Object(result))
    }
}

impl ToolNames {
    /// Returns the argument for a field of a script.
    fn to_tool_argument<'a>(&self, field: &'a str, value: &Value) -> (&'a str, Value) {
        match self.fields.iter().find(|(_, script, _)| *script == field) {
            None => (field, value.clone()),
            Some((jaato, _, Seconds)) => {
                let seconds = value.as_u64().map(|ms| ms.div_ceil(1000).max(1));
                (jaato, seconds.map_or_else(|| value.clone(), Value::from))
            }
            Some((jaato, ..)) => (jaato, value.clone()),
        }
    }
}

fn renamed_input(names: &ToolNames, arguments: &Value, folder: &Path) -> Value {
    let mut input = Map::new();
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let field = names.fields.iter().find(|(jaato, ..)| jaato == name);
        let (script, value) = match field {
            None => (name.as_str(), value.clone()),
            Some((_, script, Same)) => (*script, value.clone()),
            Some((_, script, FilePath)) => (*script, absolute_path(value, folder)),
            Some((_, script, Seconds)) => {
                (*script, value.as_u64().map_or_else(|| value.clone(), |it| json!(it * 1000)))
            }
        };
        input.insert(script.to_owned(), value);
    }
    if let Some(args) = arguments["args"].as_array().filter(|args| !args.is_empty()) {
        // One command line, so that a guard sees all of it.
        let words = args.iter().filter_map(Value::as_str);
        let quoted = words.map(|word| shlex::try_quote(word).unwrap_or_default().into_owned());
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
        let line: Vec<String> = std::iter::once(command).chain(quoted).collect();
        input.insert("command".to_owned(), line.join(" ").into());
        input.remove("args");
    }
    Value::Object(input)
}

fn absolute_path(path: &Value, folder: &Path) -> Value {
    match path.as_str() {
        Some(path) => folder.join(path).to_string_lossy().into_owned().into(),
        None => path.clone(),
    }
}

/// Lists the files of a call that touches several, or whose tool has no counterpart in scripts.
fn inputs_per_file(tool: &str, arguments: &Value, folder: &Path) -> Vec<ToolInput> {
    let parts = FileParts { folder };
    match tool {
        "removeFile" => vec![parts.removal_input(&arguments["path"])],
        "restoreFile" | "undoFileChange" => {
            vec![parts.edit_input(&arguments["path"], &Value::Null, &Value::Null)]
        }
        "moveFile" | "renameFile" => {
            parts.move_inputs(&arguments["source_path"], &arguments["destination_path"])
        }
        "findAndReplace" => {
            let paths = match &arguments["paths"] {
                Value::Array(paths) => paths.as_slice(),
                path => std::slice::from_ref(path),
            };
            let (old, new) = (&arguments["pattern"], &arguments["replacement"]);
            paths.iter().map(|path| parts.edit_input(path, old, new)).collect()
        }
        "multiFileEdit" => {
            let operations = arguments["operations"].as_array().into_iter().flatten();
            operations.flat_map(|operation| parts.operation_inputs(operation)).collect()
        }
        "apply_patch" => parts.patch_inputs(&arguments["input"]),
        _ => Vec::new(),
    }
}

/// Creates the parts of a call.
struct FileParts<'a> {
    folder: &'a Path,
}

impl FileParts<'_> {
    fn file_input(&self, name: &str, path: &Value, more: &[(&str, &Value)]) -> ToolInput {
        let path = self.folder.join(path.as_str().unwrap_or_default());
        let mut input = json!({ "file_path": path.to_string_lossy() });
        for (key, value) in more {
            input[*key] = value.as_str().unwrap_or_default().into();
        }
        ToolInput { name: name.to_owned(), input, form: InputForm::Part, is_removal: false }
    }

    fn edit_input(&self, path: &Value, old: &Value, new: &Value) -> ToolInput {
        self.file_input("Edit", path, &[("old_string", old), ("new_string", new)])
    }

    fn write_input(&self, path: &Value, content: &Value) -> ToolInput {
        self.file_input("Write", path, &[("content", content)])
    }

    fn removal_input(&self, path: &Value) -> ToolInput {
        ToolInput { is_removal: true, ..self.edit_input(path, &Value::Null, &Value::Null) }
    }

    fn move_inputs(&self, from: &Value, to: &Value) -> Vec<ToolInput> {
        vec![self.removal_input(from), self.write_input(to, &Value::Null)]
    }

    fn operation_inputs(&self, operation: &Value) -> Vec<ToolInput> {
        let path = &operation["path"];
        let either = |one: &str, other: &str| match &operation[one] {
            Value::Null => operation[other].clone(),
            path => path.clone(),
        };
        match operation["action"].as_str().unwrap_or_default() {
            "create" => vec![self.write_input(path, &operation["content"])],
            "delete" => vec![self.removal_input(path)],
            "rename" | "move" => {
                self.move_inputs(&either("from", "source_path"), &either("to", "destination_path"))
            }
            _ => vec![self.edit_input(path, &operation["old"], &operation["new"])],
        }
    }

    /// Finds the files in a patch of the form `*** Begin Patch`.
    fn patch_inputs(&self, patch: &Value) -> Vec<ToolInput> {
        let part = |line: &str| {
            let path = |header| Some(json!(line.trim().strip_prefix(header)?.trim()));
            let new = path("*** Add File:").or_else(|| path("*** Move to:"));
            let edit = |path: Value| self.edit_input(&path, &Value::Null, patch);
            new.map(|path| self.write_input(&path, patch))
                .or_else(|| path("*** Update File:").map(edit))
                .or_else(|| path("*** Delete File:").map(|path| self.removal_input(&path)))
        };
        patch.as_str().unwrap_or_default().lines().filter_map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_inputs(tool: &str, arguments: Value) -> Vec<(String, Value)> {
        let inputs = tool_inputs(tool, &arguments, Path::new("/w"));
        inputs.into_iter().map(|it| (it.name, it.input)).collect()
    }

    #[track_caller]
    fn check_single_input(tool: &str, arguments: Value, name: &str, input: Value) {
        assert_eq!(seen_inputs(tool, arguments), [(name.to_owned(), input)], "{tool}");
    }

    #[test]
    fn tools_have_the_names_and_fields_that_scripts_read() {
        check_single_input(
            "cli_based_tool",
            json!({ "command": "ls", "args": ["a b"], "timeout_seconds": 3 }),
            "Bash",
            json!({ "command": "ls 'a b'", "timeout": 3000 }),
        );
        check_single_input(
            "updateFile",
            json!({ "path": "a.py", "old": "1", "new": "2", "replace_all": true }),
            "Edit",
            json!({
                "file_path": "/w/a.py", "old_string": "1", "new_string": "2", "replace_all": true,
            }),
        );
        let written = json!({ "file_path": "/x/a", "content": "t" });
        check_single_input(
            "updateFile",
            json!({ "path": "/x/a", "new_content": "t" }),
            "Write",
            written.clone(),
        );
        check_single_input(
            "writeNewFile",
            json!({ "path": "/x/a", "content": "t" }),
            "Write",
            written,
        );
        let read = json!({ "file_path": "/w/a", "offset": 2 });
        check_single_input("readFile", json!({ "path": "a", "offset": 2 }), "Read", read);
        check_single_input(
            "shell_input",
            json!({ "input": "ls" }),
            "Bash",
            json!({ "command": "ls" }),
        );
        check_single_input("mcp__git__log", json!({ "n": 1 }), "mcp__git__log", json!({ "n": 1 }));
    }

    #[test]
    fn each_file_of_a_call_is_seen() {
        let paths = |tool: &str, arguments: Value| -> Vec<String> {
            let seen = seen_inputs(tool, arguments).into_iter();
            seen.map(|(name, input)| format!("{name} {}", input["file_path"].as_str().unwrap()))
                .collect()
        };
        let operations = json!({ "operations": [
            { "action": "edit", "path": "a", "old": "1", "new": "2" },
            { "action": "create", "path": "b", "content": "t" },
            { "action": "delete", "path": "c" },
            { "action": "rename", "from": "d", "to": "e" },
        ] });
        let expected = ["Edit /w/a", "Write /w/b", "Edit /w/c", "Edit /w/d", "Write /w/e"];
        assert_eq!(paths("multiFileEdit", operations), expected);
        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n\
                     *** Add File: .env\n+X=1\n*** Delete File: d\n*** End Patch";
        let expected = ["Edit /w/a", "Write /w/b", "Write /w/.env", "Edit /w/d"];
        assert_eq!(paths("apply_patch", json!({ "input": patch })), expected);
        let moved = json!({ "source_path": "a", "destination_path": ".env" });
        assert_eq!(paths("moveFile", moved), ["Edit /w/a", "Write /w/.env"]);
        assert_eq!(paths("removeFile", json!({ "path": ".env" })), ["Edit /w/.env"]);
        let found = json!({ "pattern": "a", "replacement": "b", "paths": ["*.rs", "x"] });
        assert_eq!(paths("findAndReplace", found), ["Edit /w/*.rs", "Edit /w/x"]);
    }

    #[track_caller]
    fn check_changed_arguments(
        tool: &str,
        arguments: Value,
        changed: Value,
        expected: Result<Value, &str>,
    ) {
        let inputs = tool_inputs(tool, &arguments, Path::new("/w"));
        let found = inputs[0].changed_arguments(&arguments, &changed);
        assert_eq!(found, expected.map_err(str::to_owned), "{tool} {changed}");
    }

    #[test]
    fn changed_input_becomes_arguments_of_the_tool() {
        check_changed_arguments(
            "cli_based_tool",
            json!({ "command": "npm", "args": ["test"], "timeout_seconds": 3 }),
            json!({ "command": "pnpm test", "timeout": 1500 }),
            Ok(json!({ "command": "pnpm test", "timeout_seconds": 2 })),
        );
        // An unchanged path stays relative.
        check_changed_arguments(
            "updateFile",
            json!({ "path": "a", "old": "1", "new": "2" }),
            json!({ "file_path": "/w/a", "new_string": "3" }),
            Ok(json!({ "path": "a", "old": "1", "new": "3" })),
        );
        check_changed_arguments(
            "mcp__a__b",
            json!({ "n": 1 }),
            json!({ "n": null }),
            Ok(json!({})),
        );
        let operations = json!({ "operations": [{ "action": "delete", "path": "c" }] });
        let same = json!({ "file_path": "/w/c" });
        check_changed_arguments("multiFileEdit", operations.clone(), same, Ok(operations.clone()));
        check_changed_arguments(
            "multiFileEdit",
            operations,
            json!({ "file_path": "/w/d" }),
            Err("jaato cannot change `file_path` of a part of this call"),
        );
        let error = "its `updatedInput` is not an object";
        check_changed_arguments("readFile", json!({ "path": "a" }), json!("x"), Err(error));
    }
}
