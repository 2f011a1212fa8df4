//! Images and files that are not sent to the model, although it accepts their kind.
//!
//! A file that is larger than the provider allows, or that no program can show, is never sent. A
//! file that the provider refuses is left out of all later requests, because a conversation must
//! not fail because of one part of it. The record keeps all of them.

use std::collections::BTreeMap;

use jaato_types::{CompletionRequest, DataPart, Error, ErrorKind, Message, Part, Retry, Role};

use super::Session;
use crate::MediaFacts;

/// Words with which providers refuse an image or a file, in lower case.
const MEDIA_WORDS: [&str; 14] = [
    "image",
    "picture",
    "pdf",
    "document",
    "attachment",
    "media_type",
    "media type",
    "mimetype",
    "mime type",
    "inline_data",
    "inlinedata",
    "file_data",
    "multimodal",
    "vision",
];

/// How providers' errors name a status by which a server blames the request itself.
const REFUSALS: [&str; 4] = [" answered 400", " answered 413", " answered 415", " answered 422"];

/// The note that replaces a file that the provider refused, for the model.
const REFUSED: &str = "it was left out: the provider refused it";

/// The images and files that are left out, by blob id.
#[derive(Debug, Default)]
pub(crate) struct OmittedMedia {
    words: BTreeMap<String, String>,
    /// Blobs that the provider refused. They are left out permanently.
    refused: Vec<String>,
    /// The facts about blobs that were already inspected.
    facts: BTreeMap<String, Option<MediaFacts>>,
}

/// The maximum number of new files of a refused request that are removed one at a time, to find the
/// one that the provider refuses.
const REMOVED_ALONE_MAX: usize = 8;

/// The blobs that were removed from one request because the provider refused it.
#[derive(Debug, Default)]
pub(crate) struct RefusedBlobs {
    removed: Vec<String>,
    /// The sets of blobs without which the request was sent.
    tried: Vec<Vec<String>>,
}

/// An image or a file of the history.
struct HistoryMedia {
    blob: String,
    mime_type: String,
    name: String,
    /// Whether the provider has answered a request with it.
    was_answered: bool,
    /// How often it is in the request.
    times: usize,
}

impl OmittedMedia {
    /// Returns the notes for the model in their place.
    pub(crate) fn omission_notes(&self) -> &BTreeMap<String, String> {
        &self.words
    }

    /// Forgets which files were too large, because another model has its own limits.
    pub(crate) fn forget_size_omissions(&mut self) {
        let Self { words, refused, .. } = self;
        words.retain(|blob, _| refused.contains(blob));
    }
}

impl Session {
    /// Inspects the images and files of the next request, and leaves out those that its provider
    /// would refuse.
    pub(crate) async fn omit_too_large_media(&mut self) {
        let shown = self.media_in_request();
        let media = self.shared.ports.media.clone();
        for one in &shown {
            if !self.left_out.facts.contains_key(&one.blob) {
                let facts = media.media_facts(&one.blob).await;
                self.left_out.facts.insert(one.blob.clone(), facts);
            }
        }
        let images = shown.iter().filter(|one| one.mime_type.starts_with("image/"));
        let images = images.map(|one| one.times).sum();
        let mut is_cut = false;
        for one in shown {
            let facts = self.left_out.facts.get(&one.blob).and_then(Option::as_ref);
            let limit = self.takes.media_limit(&one.mime_type);
            let Some(why) = facts.and_then(|facts| facts.limit_problem(limit, images)) else {
                continue;
            };
            let (name, kind) = (&one.name, &one.mime_type);
            self.shared.emitter.emit_notice(format!("{name} ({kind}) is not sent: {why}"));
            let told = format!("it was left out: {why}");
            self.left_out.words.insert(one.blob, told);
            is_cut |= one.was_answered;
        }
        if is_cut {
            self.make_cut();
        }
    }

    /// Removes what the provider may have refused from the request, and puts back what was removed
    /// before without success. Returns true if there is anything to try without.
    pub(crate) fn omit_refused_media(&mut self, error: &Error, taken: &mut RefusedBlobs) -> bool {
        let names_media = is_about_media(error);
        // Other errors get one try. Those with a hint have another reason.
        let is_suspect =
            is_request_refusal(error) && error.hint.is_none() && taken.tried.is_empty();
        if !names_media && !is_suspect {
            return false;
        }
        self.restore_media(std::mem::take(&mut taken.removed));
        let shown = self.media_in_request();
        let next = omission_candidates(&shown, names_media)
            .into_iter()
            .find(|set| !taken.tried.contains(set));
        let Some(next) = next else { return false };
        let out = shown.into_iter().filter(|one| next.contains(&one.blob)).collect();
        taken.tried.push(next);
        self.omit_media(out, taken)
    }

    /// Removes all images and files, for a request that stays too large although the error names
    /// none.
    pub(crate) fn omit_all_media(&mut self, taken: &mut RefusedBlobs) -> bool {
        let shown = self.media_in_request();
        self.omit_media(shown, taken)
    }

    fn omit_media(&mut self, out: Vec<HistoryMedia>, taken: &mut RefusedBlobs) -> bool {
        let Some(first) = out.first() else { return false };
        let (model, name, kind) = (&self.model, &first.name, &first.mime_type);
        let more = match out.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        self.shared.emitter.emit_notice(format!(
            "`{model}` refused the request: trying again without {name} ({kind}){more}"
        ));
        let is_cut = out.iter().any(|one| one.was_answered);
        for one in out {
            self.left_out.words.insert(one.blob.clone(), REFUSED.to_owned());
            self.left_out.refused.push(one.blob.clone());
            taken.removed.push(one.blob);
        }
        if is_cut {
            self.make_cut();
        }
        true
    }

    /// Puts back the files of a request that fails without them as well.
    pub(crate) fn restore_refused_media(&mut self, taken: RefusedBlobs) {
        self.restore_media(taken.removed);
    }

    fn restore_media(&mut self, blobs: Vec<String>) {
        for blob in blobs {
            self.left_out.words.remove(&blob);
            self.left_out.refused.retain(|known| *known != blob);
        }
    }

    /// Lets a model try a file that its provider refused again, because the user attached it again.
    pub(crate) fn retry_files(&mut self, files: &[Part]) {
        let blobs = files.iter().flat_map(part_data).filter_map(DataPart::blob_id);
        let again: Vec<String> = blobs.map(str::to_owned).collect();
        let refused = |blob: &String| self.left_out.refused.contains(blob);
        let again: Vec<String> = again.into_iter().filter(refused).collect();
        if !again.is_empty() {
            self.restore_media(again);
            self.make_cut();
        }
    }

    /// Counts the images and files of the next request, and their bytes.
    pub(crate) fn shown_media_size(&self) -> (u64, u64) {
        let facts = |one: &HistoryMedia| self.left_out.facts.get(&one.blob)?.as_ref();
        self.media_in_request().iter().fold((0, 0), |(count, bytes), one| {
            let times = one.times as u64;
            (count + times, bytes + times * facts(one).map_or(0, |facts| facts.bytes))
        })
    }

    /// Lists the images and files of the next request, each once.
    fn media_in_request(&self) -> Vec<HistoryMedia> {
        let mut shown: Vec<HistoryMedia> = Vec::new();
        let messages: Vec<&Message> = self.history.messages().collect();
        let answered = messages.iter().rposition(|message| message.role == Role::Model);
        for (at, message) in messages.iter().enumerate() {
            let was_answered = answered.is_some_and(|last| at < last);
            for data in message.parts.iter().flat_map(part_data) {
                let Some(blob) = data.blob_id() else { continue };
                let is_sent = self.takes.accepts_media(&data.mime_type)
                    && !self.left_out.words.contains_key(blob)
                    && message.role != Role::Model;
                if !is_sent {
                    continue;
                }
                if let Some(known) = shown.iter_mut().find(|known| known.blob == blob) {
                    known.times += 1;
                    known.was_answered |= was_answered;
                    continue;
                }
                shown.push(HistoryMedia {
                    blob: blob.to_owned(),
                    mime_type: data.mime_type.clone(),
                    name: data.name.clone().unwrap_or_else(|| "an attachment".to_owned()),
                    was_answered,
                    times: 1,
                });
            }
        }
        shown
    }
}

/// Lists the sets of blobs to try a refused request without: each of a few new files, all new
/// files, then all earlier files, then all. If the error names no media, only the new files are
/// suspect.
fn omission_candidates(shown: &[HistoryMedia], names_media: bool) -> Vec<Vec<String>> {
    let blobs = |is_in: &dyn Fn(&HistoryMedia) -> bool| -> Vec<String> {
        shown.iter().filter(|one| is_in(one)).map(|one| one.blob.clone()).collect()
    };
    let new = blobs(&|one| !one.was_answered);
    let mut sets = vec![new.clone()];
    if names_media {
        if (2..=REMOVED_ALONE_MAX).contains(&new.len()) {
            sets.splice(0..0, new.into_iter().map(|blob| vec![blob]));
        }
        sets.extend([blobs(&|one| one.was_answered), blobs(&|_| true)]);
    }
    sets.retain(|set| !set.is_empty());
    sets
}

/// Returns the images, files and values of a part.
pub(crate) fn part_data(part: &Part) -> &[DataPart] {
    match part {
        Part::Data(data) => std::slice::from_ref(data),
        Part::ToolResult(result) => &result.attachments,
        _ => &[],
    }
}

/// Returns true if a server refuses the request itself.
fn is_request_refusal(error: &Error) -> bool {
    REFUSALS.iter().any(|status| error.message.contains(status))
        && error.kind == ErrorKind::Provider
        && error.retry == Retry::Permanent
}

/// Returns true if an error names the images or files that its request carries.
pub(crate) fn is_media_refusal(error: &Error, request: &CompletionRequest) -> bool {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    is_about_media(error) && parts.any(|part| !part_data(part).is_empty())
}

/// Returns true if an error names an image or a file. Only the server's own words count, because
/// the URL before them may contain anything.
fn is_about_media(error: &Error) -> bool {
    let of_provider = matches!(error.kind, ErrorKind::Provider | ErrorKind::ContextOverflow);
    let words = ["` answered ", "` reports an error: "].iter();
    let said = words.filter_map(|mark| error.message.split_once(mark)).map(|(_, said)| said).next();
    let said = said.unwrap_or_default().to_lowercase();
    of_provider && MEDIA_WORDS.iter().any(|word| said.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_server_error_text_counts_as_a_media_error() {
        let error = |text: &str| Error::new(ErrorKind::Provider, text);
        for named in [
            "`http://h/v1` answered 400 (bad request): messages.0.content.1.image.source.base64: \
             image exceeds 5 MB maximum",
            "`http://h` answered 400 (bad request): Unable to process input image",
            "`http://h` answered 500 (internal server error): failed to decode Image bytes",
            "`http://h` reports an error: The PDF specified was not valid",
        ] {
            assert!(is_about_media(&error(named)), "{named}");
        }
        for other in [
            "`http://h/images/v1` answered 400 (bad request): messages: too few",
            "`http://h/images/v1` sent an empty answer",
            "the image is gone",
        ] {
            assert!(!is_about_media(&error(other)), "{other}");
        }
        let io = Error::new(ErrorKind::Io, "`http://h` answered 400: image");
        assert!(!is_about_media(&io));
        assert!(is_request_refusal(&error("`http://h` answered 400 (bad request): no")));
        assert!(!is_request_refusal(&error("`http://h` answered 401 (unauthorized): no")));
        assert!(!is_request_refusal(
            &error("`http://h` answered 400 (bad request): no").temporary()
        ));
    }
}
