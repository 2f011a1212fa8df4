//! Resolves paths in a plugin's settings, as marked in its schema: `~/` is the user's home, and the
//! base of a relative path depends on the place of the setting. Pure.

use std::path::{Path, PathBuf};

use jaato_config::{ConfigLayer, ValueOrigin};
use jaato_types::{Error, ErrorKind};
use serde_json::{Map, Value};

/// The schema keyword that makes a property's text, or each text of its list, a path. `"file"`:
/// `~/` is the home, and a relative path starts at [`base_folder`]. `"home"`: `~/` is the home, and
/// the plugin interprets relative paths.
pub const PATH: &str = "x-jaato-path";

/// Resolves the paths in an object of settings. `base` returns the base of a relative path.
///
/// # Errors
/// `configuration` if a path starts with `~/` and the system reports no home directory.
pub fn resolve_paths(
    values: &mut Map<String, Value>,
    schema: &Value,
    home: Option<&Path>,
    base: impl Fn(&str) -> Option<PathBuf>,
) -> Result<(), Error> {
    for (key, value) in values {
        let base = match schema["properties"][key][PATH].as_str() {
            Some("file") => base(key),
            Some("home") => None,
            _ => continue,
        };
        let texts = match value {
            Value::Array(items) => items.iter_mut().collect(),
            one => vec![one],
        };
        for text in texts {
            let Value::String(path) = text else { continue };
            *path = resolve_path(path, home, base.as_deref()).ok_or_else(|| {
                let text = format!("`{key}` is `{path}`, but the user's home folder is unknown");
                Error::new(ErrorKind::Configuration, text)
            })?;
        }
    }
    Ok(())
}

/// Returns the base of relative paths for a setting's place: the folder of the user's file, the
/// root of the workspace for its files, otherwise the working directory.
pub fn base_folder(origin: &ValueOrigin, workspace: &Path, working_directory: &Path) -> PathBuf {
    match origin {
        ValueOrigin::File { layer: ConfigLayer::Workspace, .. } => workspace.to_owned(),
        ValueOrigin::File { path, .. } => {
            let folder = path.parent().unwrap_or(Path::new(""));
            // A file given with `--config` may itself be relative.
            working_directory.join(folder)
        }
        ValueOrigin::BuiltIn
        | ValueOrigin::EnvFile { .. }
        | ValueOrigin::Variable { .. }
        | ValueOrigin::CommandLine { .. } => working_directory.to_owned(),
    }
}

fn resolve_path(path: &str, home: Option<&Path>, base: Option<&Path>) -> Option<String> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    if path == "~" {
        return home.map(|home| text(home.to_owned()));
    }
    if let Some(rest) = path.strip_prefix("~/") {
        return home.map(|home| text(home.join(rest)));
    }
    match base {
        // An empty path counts as not set.
        Some(base) if !path.is_empty() => Some(text(base.join(path))),
        _ => Some(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths_schema() -> Value {
        json!({ "properties": {
            "root": { "type": "string", PATH: "file" },
            "paths": { "type": "array", PATH: "file" },
            "mounts": { "type": "array", PATH: "home" },
            "name": { "type": "string" },
        } })
    }

    #[track_caller]
    fn check_paths(values: Value, expected: Value) {
        let Value::Object(mut values) = values else { panic!("no object") };
        let base = |_: &str| Some(PathBuf::from("/base"));
        resolve_paths(&mut values, &paths_schema(), Some(Path::new("/home/u")), base).unwrap();
        assert_eq!(Value::Object(values), expected);
    }

    #[test]
    fn paths_are_completed_and_nothing_else_is() {
        check_paths(json!({ "root": "sub" }), json!({ "root": "/base/sub" }));
        check_paths(json!({ "root": "~/x" }), json!({ "root": "/home/u/x" }));
        check_paths(json!({ "root": "~" }), json!({ "root": "/home/u" }));
        check_paths(json!({ "root": "/a", "name": "~/x" }), json!({ "root": "/a", "name": "~/x" }));
        check_paths(json!({ "root": "" }), json!({ "root": "" }));
        check_paths(json!({ "root": null }), json!({ "root": null }));
        check_paths(
            json!({ "paths": ["b", "~/c", 7] }),
            json!({ "paths": ["/base/b", "/home/u/c", 7] }),
        );
        let mounts = json!({ "mounts": ["~/data:/data:ro", "../lib:/lib"] });
        check_paths(mounts, json!({ "mounts": ["/home/u/data:/data:ro", "../lib:/lib"] }));
    }

    #[test]
    fn home_path_without_a_known_home_is_an_error() {
        let mut values = Map::from_iter([("root".to_owned(), json!("~/x"))]);
        let error = resolve_paths(&mut values, &paths_schema(), None, |_| None).unwrap_err();
        assert_eq!(error.message, "`root` is `~/x`, but the user's home folder is unknown");
    }

    #[test]
    fn relative_path_is_resolved_from_the_place_of_its_setting() {
        let (root, here) = (Path::new("/w"), Path::new("/w/sub"));
        let file = |layer, path: &str| ValueOrigin::File { layer, path: path.into(), line: 1 };
        let begins = |origin: &ValueOrigin| base_folder(origin, root, here);
        assert_eq!(begins(&file(ConfigLayer::User, "/c/config.toml")), Path::new("/c"));
        assert_eq!(begins(&file(ConfigLayer::User, "my.toml")), here);
        assert_eq!(begins(&file(ConfigLayer::Workspace, "/w/.jaato/config.toml")), root);
        assert_eq!(begins(&ValueOrigin::Variable { name: "X".to_owned() }), here);
    }
}
