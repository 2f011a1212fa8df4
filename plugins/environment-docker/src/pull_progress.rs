//! Adds up the progress of an image's layers during a download. Pure.

use std::collections::HashMap;

use bollard::models::CreateImageInfo;

/// The number of new bytes after which progress is reported again.
const STEP_BYTES: u64 = 1024 * 1024;

/// The layers of an image during its download.
#[derive(Debug, Default)]
pub struct ImageDownload {
    /// The received and the total bytes, by the layer's ID.
    layers: HashMap<String, (u64, u64)>,
    told: u64,
}

/// The progress of a download, as far as the engine knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageDownloadProgress {
    /// Received bytes.
    pub done: u64,
    /// Total bytes of all layers that have begun.
    pub total: u64,
}

impl ImageDownload {
    /// Adds the engine's report about a layer. Returns the progress if it should be reported.
    pub fn add_layer_report(&mut self, step: &CreateImageInfo) -> Option<ImageDownloadProgress> {
        let layer = self.layers.entry(step.id.clone()?).or_default();
        let detail = step.progress_detail.clone().unwrap_or_default();
        let bytes = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        match step.status.as_deref() {
            Some("Downloading") => {
                layer.1 = bytes(detail.total).unwrap_or(layer.1);
                // Engines have reported more bytes than the total.
                layer.0 = bytes(detail.current).unwrap_or(layer.0).min(layer.1);
            }
            Some("Download complete" | "Pull complete") => layer.0 = layer.1,
            // Unpacking counts from the start again and is fast, so it is ignored.
            _ => return None,
        }
        let sum = |part: fn(&(u64, u64)) -> u64| self.layers.values().map(part).sum();
        let progress =
            ImageDownloadProgress { done: sum(|layer| layer.0), total: sum(|layer| layer.1) };
        let is_news = progress.done >= self.told + STEP_BYTES;
        let is_end = progress.done == progress.total && progress.done > self.told;
        if !is_news && !is_end {
            return None;
        }
        self.told = progress.done;
        Some(progress)
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    const MIB: u64 = STEP_BYTES;

    fn pull_step(id: &str, status: &str, current: u64, total: u64) -> CreateImageInfo {
        let number = |bytes: u64| i64::try_from(bytes).ok();
        let detail = ProgressDetail { current: number(current), total: number(total) };
        CreateImageInfo {
            id: Some(id.to_owned()),
            status: Some(status.to_owned()),
            progress_detail: Some(detail),
            ..CreateImageInfo::default()
        }
    }

    #[test]
    fn download_progress_sums_the_layers_and_skips_small_steps() {
        let mut fetched = ImageDownload::default();
        let progress = |done, total| Some(ImageDownloadProgress { done, total });
        assert_eq!(
            fetched.add_layer_report(&pull_step("12", "Pulling from library/debian", 0, 0)),
            None
        );
        assert_eq!(fetched.add_layer_report(&pull_step("a", "Downloading", 1, 8 * MIB)), None);
        assert_eq!(
            fetched.add_layer_report(&pull_step("a", "Downloading", 2 * MIB, 8 * MIB)),
            progress(2 * MIB, 8 * MIB)
        );
        assert_eq!(
            fetched.add_layer_report(&pull_step("b", "Downloading", MIB, 2 * MIB)),
            progress(3 * MIB, 10 * MIB)
        );
        assert_eq!(fetched.add_layer_report(&pull_step("a", "Extracting", 1, 8 * MIB)), None);
        assert_eq!(
            fetched.add_layer_report(&pull_step("b", "Download complete", 0, 0)),
            progress(4 * MIB, 10 * MIB)
        );
        assert_eq!(
            fetched.add_layer_report(&pull_step("a", "Pull complete", 0, 0)),
            progress(10 * MIB, 10 * MIB)
        );
        assert_eq!(fetched.add_layer_report(&pull_step("a", "Pull complete", 0, 0)), None);
    }

    #[test]
    fn small_download_is_reported_at_its_end_with_capped_numbers() {
        let mut fetched = ImageDownload::default();
        assert_eq!(fetched.add_layer_report(&pull_step("a", "Downloading", 50, 100)), None);
        let end = Some(ImageDownloadProgress { done: 100, total: 100 });
        assert_eq!(fetched.add_layer_report(&pull_step("a", "Downloading", 900, 100)), end);
        assert_eq!(fetched.add_layer_report(&CreateImageInfo::default()), None);
    }
}
