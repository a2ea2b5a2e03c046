//! Wall time as text.

const DAY_S: u64 = 86_400;

/// `2026-12-01T12:00:00.000000000Z` of nanoseconds since 1970.
///
/// The date by Howard Hinnant's `civil_from_days`: years that begin in March, in eras of 400.
pub fn iso8601(wall_ns: u64) -> String {
    let (seconds, nanos) = (wall_ns / 1_000_000_000, wall_ns % 1_000_000_000);
    let days = seconds / DAY_S + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let of_day = seconds % DAY_S;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(iso8601(1_796_126_400_000_000_001), "2026-12-01T12:00:00.000000001Z");
        assert_eq!(iso8601(951_782_399_999_999_999), "2000-02-28T23:59:59.999999999Z");
        assert_eq!(iso8601(951_782_400_000_000_000), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(iso8601(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000000000Z");
    }
}
