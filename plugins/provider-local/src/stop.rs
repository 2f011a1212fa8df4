//! Texts before which an answer stops. Pure.

/// Texts that must not be part of an answer.
#[derive(Debug, Clone, Default)]
pub struct StopTexts {
    texts: Vec<Vec<u8>>,
}

impl StopTexts {
    /// Creates the list. Empty texts are ignored.
    pub fn new(texts: &[String]) -> Self {
        let texts = texts.iter().filter(|text| !text.is_empty());
        Self { texts: texts.map(|text| text.clone().into_bytes()).collect() }
    }

    /// Finds the start of the first complete stop text.
    pub fn find_stop_text(&self, output: &[u8]) -> Option<usize> {
        let at = |text: &Vec<u8>| output.windows(text.len()).position(|window| window == text);
        self.texts.iter().filter_map(at).min()
    }

    /// Returns the length of the longest suffix of the output that may be the start of a stop text.
    pub fn stop_prefix_length(&self, output: &[u8]) -> usize {
        let longest = self.texts.iter().map(Vec::len).max().unwrap_or(0);
        let from = output.len().saturating_sub(longest);
        let begins = |start: &usize| self.texts.iter().any(|it| it.starts_with(&output[*start..]));
        (from..output.len()).find(begins).map_or(0, |start| output.len() - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop_texts(texts: &[&str]) -> StopTexts {
        StopTexts::new(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn earliest_stop_text_in_the_output_counts() {
        let stops = stop_texts(&["END", "", "\n\n"]);
        for (output, at) in
            [("", None), ("EN", None), ("a END", Some(2)), ("a\n\nEND", Some(1)), ("END", Some(0))]
        {
            assert_eq!(stops.find_stop_text(output.as_bytes()), at, "{output:?}");
        }
    }

    #[test]
    fn unfinished_stop_text_at_the_end_of_output_is_found() {
        let stops = stop_texts(&["END", "NDE", "€"]);
        for (output, begun) in
            [("", 0), ("a", 0), ("aE", 1), ("aEN", 2), ("aND", 2), ("ENx", 0), ("EEN", 2)]
        {
            assert_eq!(stops.stop_prefix_length(output.as_bytes()), begun, "{output:?}");
        }
        assert_eq!(stops.stop_prefix_length(&"a€".as_bytes()[..3]), 2);
    }

    #[test]
    fn empty_stop_texts_never_stop_the_output() {
        for stops in [stop_texts(&[]), stop_texts(&[""])] {
            assert_eq!((stops.find_stop_text(b"abc"), stops.stop_prefix_length(b"abc")), (None, 0));
        }
    }
}
