//! The aspect `datetime`: the local time and UTC.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jiff::tz::Offset;

use crate::facts::LocalMoment;

const PLAIN: &str = "%Y-%m-%d %H:%M:%S";

/// Returns local time, UTC and the offset. `iso_local` contains no offset, because `utc_offset`
/// does.
pub(crate) fn datetime_fields(moment: &LocalMoment) -> Map<String, Value> {
    let utc = Offset::UTC.to_datetime(moment.timestamp);
    let local = moment.offset.to_datetime(moment.timestamp);
    Map::from_iter([
        ("local".to_owned(), json!(local.strftime(PLAIN).to_string())),
        ("utc".to_owned(), json!(utc.strftime(PLAIN).to_string())),
        ("timezone".to_owned(), json!(moment.zone)),
        ("utc_offset".to_owned(), json!(format_offset(moment.offset))),
        ("iso_local".to_owned(), json!(local.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string())),
        ("iso_utc".to_owned(), json!(utc.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
    ])
}

/// Formats an offset like `+05:30`. Drops seconds, which only time zones of a century ago have.
fn format_offset(offset: Offset) -> String {
    let minutes = offset.seconds().unsigned_abs() / 60;
    let sign = if offset.is_negative() { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{local_moment, report_lines};

    #[track_caller]
    fn check_datetime(offset_seconds: i32, zone: &str, expected: Expect) {
        expected.assert_eq(&report_lines(&datetime_fields(&local_moment(offset_seconds, zone))));
    }

    #[test]
    fn time_is_reported_in_local_time_and_utc() {
        check_datetime(
            3600,
            "Europe/Berlin",
            expect![[r#"
                iso_local = "2026-01-01T00:30:15.123456"
                iso_utc = "2025-12-31T23:30:15Z"
                local = "2026-01-01 00:30:15"
                timezone = "Europe/Berlin"
                utc = "2025-12-31 23:30:15"
                utc_offset = "+01:00"
            "#]],
        );
        check_datetime(
            0,
            "UTC",
            expect![[r#"
                iso_local = "2025-12-31T23:30:15.123456"
                iso_utc = "2025-12-31T23:30:15Z"
                local = "2025-12-31 23:30:15"
                timezone = "UTC"
                utc = "2025-12-31 23:30:15"
                utc_offset = "+00:00"
            "#]],
        );
    }

    #[test]
    fn utc_offset_keeps_its_sign_and_half_hours() {
        for (seconds, text) in
            [(19_800, "+05:30"), (-34_200, "-09:30"), (-1_800, "-00:30"), (50_400, "+14:00")]
        {
            let offset = Offset::from_seconds(seconds).unwrap();
            assert_eq!(format_offset(offset), text);
        }
    }
}
