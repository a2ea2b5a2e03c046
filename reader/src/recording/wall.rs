//! Wall time in words: `2026-12-01T15:58:14Z`.

/// UTC, of nanoseconds since 1970.
pub(super) fn utc(realtime_ns: u64) -> String {
    let seconds = realtime_ns / 1_000_000_000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day since 1970. Years begin in March here, so that the leap day is the last; the rest is
/// arithmetic on 400 years of 146,097 days (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn date(day_since_1970: u64) -> (u64, u64, u64) {
    let day = day_since_1970 + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, of_year - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_have_their_names() {
        let named = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_796_140_694, "2026-12-01T15:58:14Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, name) in named {
            assert_eq!(utc(seconds * 1_000_000_000 + 999_999_999), name);
        }
    }
}
