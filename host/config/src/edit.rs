//! Edits a user's configuration file, and keeps its comments, order and layout.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::error::ConfigError;
use crate::file::read_config_text;

/// The change to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChange {
    /// Adds the name.
    In,
    /// Removes the name.
    Out,
}

/// Adds a plugin's name to `[plugins] disabled` in a file, or removes it. Returns true if that
/// changed the file. A missing file counts as empty.
///
/// # Errors
/// When the file cannot be read or written, or `disabled` is not a list.
pub fn list_disabled_plugin(
    path: &Path,
    name: &str,
    listing: ListChange,
) -> Result<bool, ConfigError> {
    let text = read_config_text(path)?.unwrap_or_default();
    let failed = |cause: String| ConfigError::Edit { path: path.to_owned(), cause };
    let Some(text) = with_list_change(&text, name, listing).map_err(failed)? else {
        return Ok(false);
    };
    replace_file(path, &text).map_err(|error| failed(error.to_string()))?;
    Ok(true)
}

/// Sets the model in a file that does not set it. A missing file counts as empty.
///
/// # Errors
/// When the file cannot be read or written.
pub fn set_model(path: &Path, model: &str) -> Result<(), ConfigError> {
    let text = read_config_text(path)?.unwrap_or_default();
    let failed = |cause: String| ConfigError::Edit { path: path.to_owned(), cause };
    let text = with_model(&text, model).map_err(failed)?;
    replace_file(path, &text).map_err(|error| failed(error.to_string()))
}

fn with_model(text: &str, model: &str) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let is_new = document.is_empty();
    document.as_table_mut().insert("model", toml_edit::value(model));
    let text = document.to_string();
    Ok(if is_new { format!("version = {}\n\n{text}", crate::CONFIG_VERSION) } else { text })
}

/// Returns the text with the name added or removed. Returns `None` if there is nothing to change.
fn with_list_change(text: &str, name: &str, listing: ListChange) -> Result<Option<String>, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let is_new = document.is_empty();
    let plugins =
        document.as_table_mut().entry("plugins").or_insert_with(|| Item::Table(Table::new()));
    let plugins: &mut dyn TableLike =
        plugins.as_table_like_mut().ok_or("`plugins` is not a section")?;
    if listing == ListChange::Out && !plugins.contains_key("disabled") {
        return Ok(None);
    }
    let disabled = plugins.entry("disabled").or_insert_with(|| Item::Value(Array::new().into()));
    let disabled = disabled.as_array_mut().ok_or("`plugins.disabled` is not a list")?;
    let before = disabled.len();
    let at = disabled.iter().position(|value| value.as_str() == Some(name));
    match (listing, at) {
        (ListChange::In, None) => append_name(disabled, name),
        (ListChange::Out, Some(_)) => remove_name(disabled, name),
        (ListChange::In, Some(_)) | (ListChange::Out, None) => {}
    }
    if disabled.len() == before {
        return Ok(None);
    }
    let text = document.to_string();
    Ok(Some(if is_new { format!("version = {}\n\n{text}", crate::CONFIG_VERSION) } else { text }))
}

/// Adds a name in the style of the others: after the last one, and on its own line if each of them
/// has one.
fn append_name(list: &mut Array, name: &str) {
    let mut value = Value::from(name);
    let last = list.len().checked_sub(1).and_then(|last| list.get(last));
    if let Some(prefix) = last.and_then(|value| value.decor().prefix()?.as_str()) {
        // A comment in front of the last name belongs to that name.
        let indent = prefix.rfind('\n').map_or(" ", |line| &prefix[line..]);
        value.decor_mut().set_prefix(indent);
        // So does a comment after it, up to the end of its line.
        let behind = list.trailing().as_str().unwrap_or_default().to_owned();
        if behind.contains('#')
            && let Some(line) = behind.rfind('\n')
        {
            value.decor_mut().set_prefix(format!("{}{indent}", &behind[..line]));
            list.set_trailing(&behind[line..]);
        }
    }
    list.push_formatted(value);
}

/// Removes every occurrence of a name. The new first name gets the position of the previous one.
fn remove_name(list: &mut Array, name: &str) {
    let first = list.get(0).and_then(|value| Some(value.decor().prefix()?.as_str()?.to_owned()));
    list.retain(|value| value.as_str() != Some(name));
    if let (Some(value), Some(prefix)) = (list.get_mut(0), first)
        && value.decor().prefix().and_then(|prefix| prefix.as_str()) == Some(" ")
    {
        value.decor_mut().set_prefix(prefix);
    }
}

/// Replaces a file completely, or leaves it as it was. Follows a link and keeps the file's mode.
///
/// # Errors
/// When the folder cannot be made, or the file cannot be written.
pub fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let path: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    replace_name(&path, text.as_bytes())
}

/// As [`replace_file`], but replaces a link itself.
pub(crate) fn replace_name(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    jaato_places::make_missing_folders(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    if let Ok(metadata) = fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check_list_change(text: &str, name: &str, listing: ListChange, expected: Expect) {
        let changed = with_list_change(text, name, listing).unwrap();
        expected.assert_eq(changed.as_deref().unwrap_or("unchanged"));
        // Applying it twice changes nothing more.
        if let Some(changed) = changed {
            assert_eq!(with_list_change(&changed, name, listing), Ok(None));
        }
    }

    #[test]
    fn a_model_is_set_before_the_sections() {
        let set = |text| with_model(text, "a/b").unwrap();
        assert_eq!(set(""), "version = 1\n\nmodel = \"a/b\"\n");
        let text = "# mine\nversion = 1\n\n[gc]\nx = 1\n";
        let expected = "# mine\nversion = 1\nmodel = \"a/b\"\n\n[gc]\nx = 1\n";
        assert_eq!(set(text), expected);
        assert!(with_model("= 1", "a/b").is_err());
    }

    #[test]
    fn disabled_plugin_is_added_with_or_without_an_existing_section() {
        check_list_change(
            "",
            "moon",
            ListChange::In,
            expect![[r#"
            version = 1

            [plugins]
            disabled = ["moon"]
        "#]],
        );
        check_list_change(
            "# mine\nmodel = \"a/b\" # best\n",
            "moon",
            ListChange::In,
            expect![[r#"
            # mine
            model = "a/b" # best

            [plugins]
            disabled = ["moon"]
        "#]],
        );
        check_list_change(
            "[plugins.sun]\nrays = 2\n",
            "moon",
            ListChange::In,
            expect![[r#"
            [plugins]
            disabled = ["moon"]
            [plugins.sun]
            rays = 2
        "#]],
        );
        check_list_change(
            "[plugins]\n# off\ndisabled = [\"sun\"] # hot\n",
            "moon",
            ListChange::In,
            expect![[r#"
            [plugins]
            # off
            disabled = ["sun", "moon"] # hot
        "#]],
        );
        check_list_change(
            "plugins.disabled = []",
            "moon",
            ListChange::In,
            expect![[r#"
            plugins.disabled = ["moon"]
        "#]],
        );
    }

    #[test]
    fn multi_line_list_keeps_its_format() {
        let text = "[plugins]\ndisabled = [\n    # hot\n    \"sun\",\n    \"star\", # far\n]\n";
        check_list_change(
            text,
            "moon",
            ListChange::In,
            expect![[r#"
            [plugins]
            disabled = [
                # hot
                "sun",
                "star", # far
                "moon",
            ]
        "#]],
        );
        check_list_change(
            text,
            "star",
            ListChange::Out,
            expect![[r#"
            [plugins]
            disabled = [
                # hot
                "sun", # far
            ]
        "#]],
        );
    }

    #[test]
    fn plugin_is_removed_completely_from_its_list_and_from_no_other() {
        let text = "[plugins]\ndisabled = [\"moon\", \"sun\", \"moon\"]\n\n[tools]\ndisabled = [\"moon\"]\n";
        check_list_change(
            text,
            "moon",
            ListChange::Out,
            expect![[r#"
            [plugins]
            disabled = ["sun"]

            [tools]
            disabled = ["moon"]
        "#]],
        );
        check_list_change("[plugins]\n", "moon", ListChange::Out, expect!["unchanged"]);
        check_list_change("", "moon", ListChange::Out, expect!["unchanged"]);
    }

    #[test]
    fn edit_of_a_value_that_is_not_a_list_fails() {
        for text in ["plugins = 1", "[plugins]\ndisabled = \"moon\"", "[plugins"] {
            with_list_change(text, "moon", ListChange::In).unwrap_err();
        }
    }

    #[test]
    fn the_file_is_replaced_whole_and_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jaato/config.toml");
        assert!(list_disabled_plugin(&path, "moon", ListChange::In).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(list_disabled_plugin(&path, "sun", ListChange::In).unwrap());
        assert!(!list_disabled_plugin(&path, "sun", ListChange::In).unwrap());
        assert!(fs::read_to_string(&path).unwrap().ends_with("[\"moon\", \"sun\"]\n"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
