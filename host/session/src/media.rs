//! Facts about images and files before a model receives them, and why one is left out.

use futures_util::future::BoxFuture;
use jaato_types::MediaLimit;

/// Inspects the size and dimensions of blobs in a session's store.
pub trait Media: Send + Sync {
    /// Returns the facts about a blob. Returns `None` if no blob has this id, or the blob cannot be
    /// read.
    fn media_facts<'a>(&'a self, blob: &'a str) -> BoxFuture<'a, Option<MediaFacts>>;
}

/// Facts about a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaFacts {
    /// Its length.
    pub bytes: u64,
    /// Width and height of an image in pixels, if its bytes contain them.
    pub sides: Option<(u32, u32)>,
    /// Why no program can show it, if it is damaged: `it ends in the middle`.
    pub damage: Option<&'static str>,
}

/// Knows no facts, so every blob is sent.
pub struct NoMedia;

impl Media for NoMedia {
    fn media_facts<'a>(&'a self, _blob: &'a str) -> BoxFuture<'a, Option<MediaFacts>> {
        Box::pin(std::future::ready(None))
    }
}

impl MediaFacts {
    /// Returns why the blob is not sent to a model with this `limit`. `images` is the number of
    /// images in the request.
    pub(crate) fn limit_problem(
        &self,
        limit: Option<&MediaLimit>,
        images: usize,
    ) -> Option<String> {
        if let Some(damage) = self.damage {
            return Some(damage.to_owned());
        }
        let limit = limit?;
        if limit.bytes_max > 0 && self.bytes > limit.bytes_max {
            let (has, max) = (self.bytes, limit.bytes_max);
            return Some(format!("it has {has} bytes, and the model takes at most {max}"));
        }
        let (width, height) = self.sides?;
        let side = width.max(height);
        if limit.side_max > 0 && side > limit.side_max {
            let max = limit.side_max;
            return Some(format!(
                "it has {width} x {height} pixels, and the model takes at most {max} a side"
            ));
        }
        let is_many = limit.many > 0 && images > limit.many as usize;
        (is_many && side > limit.side_max_of_many).then(|| {
            let (many, max) = (limit.many, limit.side_max_of_many);
            format!(
                "it has {width} x {height} pixels, and from more than {many} images on the model \
                 takes at most {max} a side"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_problem(facts: &MediaFacts, images: usize, expected: Option<&str>) {
        let limit = MediaLimit {
            mime_type: "image/*".to_owned(),
            bytes_max: 100,
            side_max: 80,
            many: 2,
            side_max_of_many: 20,
        };
        let found = facts.limit_problem(Some(&limit), images);
        match expected {
            None => assert_eq!(found, None),
            Some(words) => {
                assert!(found.as_deref().is_some_and(|it| it.contains(words)), "{found:?}")
            }
        }
    }

    #[test]
    fn media_at_a_limit_is_accepted_and_beyond_it_is_refused() {
        let image =
            |bytes, width, height| MediaFacts { bytes, sides: Some((width, height)), damage: None };
        check_problem(&image(100, 80, 80), 2, None);
        check_problem(&image(101, 1, 1), 1, Some("101 bytes, and the model takes at most 100"));
        check_problem(
            &image(1, 81, 2),
            1,
            Some("81 x 2 pixels, and the model takes at most 80 a side"),
        );
        check_problem(&image(1, 2, 81), 1, Some("2 x 81 pixels"));
        check_problem(&image(1, 20, 20), 3, None);
        check_problem(&image(1, 21, 20), 3, Some("from more than 2 images on"));
        check_problem(&MediaFacts { bytes: 1, ..MediaFacts::default() }, 9, None);
        let damage = Some("it ends in the middle");
        check_problem(&MediaFacts { damage, ..image(1, 1, 1) }, 1, Some("it ends in the middle"));
        assert_eq!(image(u64::MAX, u32::MAX, 1).limit_problem(None, 99), None);
        let none = MediaLimit::default();
        assert_eq!(image(u64::MAX, u32::MAX, 1).limit_problem(Some(&none), 99), None);
    }
}
