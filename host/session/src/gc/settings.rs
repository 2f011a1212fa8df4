//! The `[gc]` settings as tools and the gc see them. The configuration declares them.

use jaato_config::GcSettings;
use jaato_types::service::GcFacts;
use serde_json::{Value, json};

/// Returns the settings that tools may see.
pub(super) fn settings_facts(settings: &GcSettings) -> GcFacts {
    GcFacts {
        threshold_percent: settings.threshold_percent.get(),
        auto_trigger: settings.auto_trigger,
        preserve_recent_turns: settings.preserve_recent_turns,
        max_turns: (settings.max_turns > 0).then_some(settings.max_turns),
    }
}

/// Returns the settings that a gc gets. Its pinned turns are numbered within the request.
pub(super) fn request_settings(settings: &GcSettings, pinned: &[usize]) -> Value {
    json!({
        "threshold_percent": settings.threshold_percent.get(),
        "target_percent": settings.target_percent,
        "pressure_percent": settings.pressure_percent,
        "summarize_middle_turns": settings.summarize_middle_turns,
        "summary_model": (!settings.summary_model.is_empty()).then_some(&settings.summary_model),
        "auto_trigger": settings.auto_trigger,
        "check_before_send": settings.check_before_send,
        "preserve_recent_turns": settings.preserve_recent_turns,
        "pinned_turn_indices": pinned,
        "max_turns": (settings.max_turns > 0).then_some(settings.max_turns),
        "notify_on_gc": settings.notify_on_gc,
    })
}
