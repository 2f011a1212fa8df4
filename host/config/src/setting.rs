//! The types of configuration values, and how each is read and shown.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jaato_types::ModelId;

use crate::model_id::parse_model_name;
use crate::toml_tree::{TomlNode, TomlValue};

/// The bases of relative and `~/` paths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathBases<'a> {
    /// The folder of the file that contains the value, or the working directory for variables.
    pub folder: &'a Path,
    /// The user's home, if known.
    pub home: Option<&'a Path>,
}

/// A type of value. Reading returns `None` if the text or value is not of the type.
pub(crate) trait Setting: Sized {
    /// The kind of value, for errors and documentation.
    const KIND: &'static str;

    /// Parses a value of a configuration file.
    fn from_toml(value: &TomlValue, bases: PathBases<'_>) -> Option<Self>;

    /// Parses a variable.
    fn from_text(text: &OsStr, bases: PathBases<'_>) -> Option<Self>;

    /// Formats the value as a configuration file would have it.
    fn to_text(&self) -> String;

    /// Returns true if a number is in its range.
    fn is_within(&self, _limits: (u64, u64)) -> bool {
        true
    }

    /// Joins a list with the list of a lower layer. For other types the higher layer wins.
    fn join_lower_layer(self, _lower: Self) -> Self {
        self
    }
}

impl Setting for bool {
    const KIND: &'static str = "true or false";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        match value {
            TomlValue::Boolean(flag) => Some(*flag),
            _ => None,
        }
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        match text.to_str()?.trim().to_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(true),
            "0" | "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    fn to_text(&self) -> String {
        self.to_string()
    }
}

/// Implements whole numbers for each type that a key may have. A number that the type cannot hold
/// is not a valid value.
macro_rules! whole_numbers {
    ($($number:ty),+) => { $(
        impl Setting for $number {
            const KIND: &'static str = "a whole number";

            fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
                match value {
                    TomlValue::Integer(Ok(number)) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }

            fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
                text.to_str()?.trim().parse().ok()
            }

            fn to_text(&self) -> String {
                self.to_string()
            }

            fn is_within(&self, (least, most): (u64, u64)) -> bool {
                u64::try_from(*self).is_ok_and(|number| (least..=most).contains(&number))
            }
        }
    )+ };
}

whole_numbers!(u32, u64, usize);

/// A list of numbers, separated by commas in a variable.
impl Setting for Vec<u64> {
    const KIND: &'static str = "a list of whole numbers";

    fn from_toml(value: &TomlValue, bases: PathBases<'_>) -> Option<Self> {
        toml_list(value)?.iter().map(|item| u64::from_toml(&item.value, bases)).collect()
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        let parts = text.to_str()?.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| part.parse().ok()).collect()
    }

    fn to_text(&self) -> String {
        format!("{self:?}")
    }
}

/// One name, for example of a provider.
impl Setting for String {
    const KIND: &'static str = "a name";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        toml_text(value).and_then(parse_name)
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        parse_name(text.to_str()?)
    }

    fn to_text(&self) -> String {
        format!("{self:?}")
    }
}

/// A list of names, separated by commas in a variable.
impl Setting for Vec<String> {
    const KIND: &'static str = "a list of names";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        toml_list(value)?.iter().map(|item| toml_text(&item.value).and_then(parse_name)).collect()
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        text.to_str()?.split(',').filter(|part| !part.trim().is_empty()).map(parse_name).collect()
    }

    fn to_text(&self) -> String {
        format!("{self:?}")
    }

    fn join_lower_layer(self, lower: Self) -> Self {
        join_lists(self, lower)
    }
}

/// A list of folders, separated as in `PATH` in a variable.
impl Setting for Vec<PathBuf> {
    const KIND: &'static str = "a list of folders";

    fn from_toml(value: &TomlValue, bases: PathBases<'_>) -> Option<Self> {
        toml_list(value)?
            .iter()
            .map(|item| parse_path(Path::new(toml_text(&item.value)?), bases))
            .collect()
    }

    fn from_text(text: &OsStr, bases: PathBases<'_>) -> Option<Self> {
        // An empty part would silently mean the working directory, so it is ignored.
        std::env::split_paths(text)
            .filter(|part| !part.as_os_str().is_empty())
            .map(|part| parse_path(&part, bases))
            .collect()
    }

    fn to_text(&self) -> String {
        let shown: Vec<_> = self.iter().map(|path| path.display().to_string()).collect();
        format!("{shown:?}")
    }

    fn join_lower_layer(self, lower: Self) -> Self {
        join_lists(self, lower)
    }
}

/// A file, or none.
impl Setting for Option<PathBuf> {
    const KIND: &'static str = "a path";

    fn from_toml(value: &TomlValue, bases: PathBases<'_>) -> Option<Self> {
        parse_path(Path::new(toml_text(value)?), bases).map(Some)
    }

    fn from_text(text: &OsStr, bases: PathBases<'_>) -> Option<Self> {
        parse_path(Path::new(text), bases).map(Some)
    }

    fn to_text(&self) -> String {
        match self {
            Some(path) => format!("{:?}", path.display().to_string()),
            None => "(not set)".to_owned(),
        }
    }
}

impl Setting for ModelId {
    const KIND: &'static str = "a model as `provider/model`, or your own name for it";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        parse_model_name(toml_text(value)?)
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        parse_model_name(text.to_str()?)
    }

    fn to_text(&self) -> String {
        format!("{:?}", self.as_str())
    }
}

pub(crate) fn toml_text(value: &TomlValue) -> Option<&str> {
    match value {
        TomlValue::Text(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn toml_list(value: &TomlValue) -> Option<&[TomlNode]> {
    match value {
        TomlValue::Array(items) => Some(items),
        _ => None,
    }
}

fn parse_name(text: &str) -> Option<String> {
    let name = text.trim();
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
    is_name.then(|| name.to_owned())
}

fn parse_path(path: &Path, bases: PathBases<'_>) -> Option<PathBuf> {
    if path.as_os_str().is_empty() {
        return None;
    }
    match path.strip_prefix("~") {
        Ok(rest) => Some(bases.home?.join(rest)),
        Err(_) => Some(bases.folder.join(path)),
    }
}

fn join_lists<T: PartialEq>(mut higher: Vec<T>, lower: Vec<T>) -> Vec<T> {
    for item in lower {
        if !higher.contains(&item) {
            higher.push(item);
        }
    }
    higher
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text<T: Setting>(text: &str, expected: Option<&str>) {
        let bases = PathBases { folder: Path::new("/base"), home: Some(Path::new("/home/u")) };
        let shown = T::from_text(OsStr::new(text), bases).map(|value| value.to_text());
        assert_eq!(shown.as_deref(), expected, "{text:?}");
    }

    #[test]
    fn flags_are_read_in_every_usual_spelling_and_no_other() {
        for text in ["1", "true", "Yes", " on "] {
            check_text::<bool>(text, Some("true"));
        }
        for text in ["0", "FALSE", "no", "off"] {
            check_text::<bool>(text, Some("false"));
        }
        check_text::<bool>("maybe", None);
    }

    #[test]
    fn lists_of_names_drop_empty_parts() {
        check_text::<Vec<String>>("a, b,,", Some(r#"["a", "b"]"#));
        check_text::<Vec<String>>("a b", None);
    }

    #[test]
    fn paths_are_completed_and_an_empty_part_is_not_the_working_directory() {
        check_text::<Vec<PathBuf>>("x::/y:~/z", Some(r#"["/base/x", "/y", "/home/u/z"]"#));
        check_text::<Option<PathBuf>>("p.md", Some(r#""/base/p.md""#));
    }

    #[test]
    fn a_home_path_without_a_home_is_refused() {
        let bases = PathBases { folder: Path::new("/base"), home: None };
        assert_eq!(<Option<PathBuf>>::from_text(OsStr::new("~/x"), bases), None);
    }

    #[test]
    fn numbers_are_whole_and_not_negative() {
        check_text::<u64>("50", Some("50"));
        check_text::<u64>("-1", None);
        check_text::<u64>("1.5", None);
        check_text::<u32>("4294967295", Some("4294967295"));
        check_text::<u32>("4294967296", None);
    }

    #[test]
    fn number_lists_are_whole_numbers_separated_by_commas() {
        check_text::<Vec<u64>>("0, 3,", Some("[0, 3]"));
        check_text::<Vec<u64>>("0, x", None);
    }

    #[test]
    fn joined_lists_keep_higher_layer_first_and_drop_duplicates() {
        let higher = vec!["b".to_owned(), "a".to_owned()];
        let lower = vec!["c".to_owned(), "a".to_owned()];
        assert_eq!(higher.join_lower_layer(lower), ["b", "a", "c"]);
    }
}
