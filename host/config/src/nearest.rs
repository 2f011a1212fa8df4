//! Finds the known name that a user probably meant.

/// The minimum similarity of a suggested name (1 is equal, 0 has nothing in common).
const LIKENESS_MIN: f64 = 0.7;

/// Returns the known name most similar to `name`, if one is similar enough. Compares the whole name
/// and its last dotted part, so that it also finds a key in the wrong section.
pub(crate) fn nearest_name<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let likeness = name_similarity(name, candidate);
        if likeness >= LIKENESS_MIN && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn name_similarity(name: &str, candidate: &str) -> f64 {
    let name = name.to_lowercase();
    let candidate = candidate.to_lowercase();
    let whole = strsim::normalized_damerau_levenshtein(&name, &candidate);
    // Slightly less than the whole name, so that `tools.disabled` beats `plugins.disabled` for
    // `tool.disabled`.
    let part =
        strsim::normalized_damerau_levenshtein(last_segment(&name), last_segment(&candidate)) * 0.9;
    whole.max(part)
}

fn last_segment(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_suggestion(name: &str, expected: Option<&str>) {
        let known = ["offline", "session.steps_max", "tools.disabled", "plugins.disabled"];
        assert_eq!(nearest_name(name, known.into_iter()), expected);
    }

    #[test]
    fn misspelled_key_gets_the_nearest_key_as_suggestion() {
        check_suggestion("ofline", Some("offline"));
        check_suggestion("Offline", Some("offline"));
        check_suggestion("session.step_max", Some("session.steps_max"));
        check_suggestion("tool.disabled", Some("tools.disabled"));
    }

    #[test]
    fn key_in_the_wrong_section_gets_its_full_path_as_suggestion() {
        check_suggestion("steps_max", Some("session.steps_max"));
    }

    #[test]
    fn dissimilar_key_gets_no_suggestion() {
        check_suggestion("colour", None);
        check_suggestion("", None);
    }
}
