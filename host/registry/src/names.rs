//! Finds the known name that the user meant.

/// Returns the known name that is most similar to a wrong one, if one is similar enough.
pub fn nearest_name<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const SIMILARITY_MIN: f64 = 0.75;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), name))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_name_is_corrected_and_an_unrelated_word_is_not() {
        let known = ["get_environment", "cli_based_tool"];
        assert_eq!(nearest_name("get_enviroment", known), Some("get_environment"));
        assert_eq!(nearest_name("zzz", known), None);
    }
}
