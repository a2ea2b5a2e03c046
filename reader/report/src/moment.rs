//! Times as people write them.

use crate::ReportError;

/// A point of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub text: String,
    pub when: When,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// Since the recording began.
    SinceStart { ns: u64 },
    /// Of a day in UTC: the first such time after the recording began.
    OfDay { ns: u64 },
    /// Nanoseconds since 1970.
    Wall { ns: u64 },
}

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

impl std::str::FromStr for Moment {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Moment, ReportError> {
        let when = parse(text.trim()).ok_or_else(|| ReportError::Moment { text: text.to_owned() })?;
        Ok(Moment { text: text.to_owned(), when })
    }
}

impl Moment {
    /// Nanoseconds since 1970, in a recording that began at `began_ns`.
    pub fn wall_ns(&self, began_ns: u64) -> u64 {
        match self.when {
            When::SinceStart { ns } => began_ns.saturating_add(ns),
            When::Wall { ns } => ns,
            When::OfDay { ns } => {
                let of_day = began_ns - began_ns % DAY_NS + ns;
                // A recording that says 12:00:00.3 began at 12:00:00 for a person.
                if of_day + SECOND_NS < began_ns { of_day + DAY_NS } else { of_day }
            }
        }
    }
}

fn parse(text: &str) -> Option<When> {
    match text.find(['T', 't', ' ']) {
        Some(at) => Some(When::Wall { ns: rfc3339(&text[..at], text.get(at + 1..)?)? }),
        None if text.contains(':') => time_of_day(text).map(|ns| When::OfDay { ns }),
        None => decimal(text).map(|ns| When::SinceStart { ns }),
    }
}

/// `12.5` and `12.5s`, without the rounding of floating point.
fn decimal(text: &str) -> Option<u64> {
    let text = text.strip_suffix('s').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    whole.checked_mul(SECOND_NS)?.checked_add(fraction_ns(fraction)?)
}

fn fraction_ns(fraction: &str) -> Option<u64> {
    if fraction.is_empty() {
        return Some(0);
    }
    let kept = &fraction[..fraction.len().min(9)];
    digits(fraction.get(kept.len()..)?).or(Some(0).filter(|_| fraction.len() == kept.len()))?;
    Some(digits(kept)? * 10_u64.pow(9 - kept.len() as u32))
}

fn digits(text: &str) -> Option<u64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// `12:03` or `12:03:04.5`.
fn time_of_day(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    if parts.next().is_some() {
        return None;
    }
    let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, decimal(seconds)?);
    let is_time = hours < 24 && minutes < 60 && seconds < 61 * SECOND_NS;
    is_time.then(|| (hours * 60 + minutes) * 60 * SECOND_NS + seconds)
}

fn rfc3339(date: &str, time: &str) -> Option<u64> {
    let (time, offset_s) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => {
            let at = time.rfind(['+', '-'])?;
            let offset = i64::try_from(time_of_day(&time[at + 1..])? / SECOND_NS).ok()?;
            (&time[..at], if time[at..].starts_with('-') { -offset } else { offset })
        }
    };
    let mut parts = date.split('-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1970..2500).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if day == 0 || day > days_in(year, month) {
        return None;
    }
    let days = days_since_1970(year as i64, month as i64, day as i64);
    let seconds = days * 86_400 - offset_s;
    u64::try_from(seconds).ok()?.checked_mul(SECOND_NS)?.checked_add(time_of_day(time)?)
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Howard Hinnant's `days_from_civil`: years begin in March, in eras of 400.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `2026-12-01T12:03:04.500Z`.
pub fn rfc3339_of(wall_ns: u64) -> String {
    let (days, of_day) = (wall_ns / DAY_NS, wall_ns % DAY_NS);
    let (year, month, day) = civil(days as i64);
    let (seconds, ms) = (of_day / SECOND_NS, of_day % SECOND_NS / 1_000_000);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z")
}

/// Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-12-01T12:00:00Z, as `date -u -d` says.
    const NOON_NS: u64 = 1_796_126_400 * SECOND_NS;

    fn wall(text: &str) -> Option<u64> {
        text.parse::<Moment>().ok().map(|moment| moment.wall_ns(NOON_NS))
    }

    #[test]
    fn times_as_people_write_them() {
        for (text, after_noon_ms) in [
            ("0", 0_i64),
            ("12.5", 12_500),
            (".25s", 250),
            ("1e3", -1),
            ("-1", -1),
            ("", -1),
            (".", -1),
            ("1.x", -1),
            ("12:03:04", 184_000),
            ("12:03", 180_000),
            ("11:00:00", 23 * 3_600_000),
            ("24:00:00", -1),
            ("12:61:00", -1),
            ("2026-12-01T12:00:01.5Z", 1_500),
            ("2026-12-01T13:00:01+01:00", 1_000),
            ("2026-12-01 06:30:00-05:30", 0),
            ("2026-12-01T12:00:00", -1),
            ("2026-02-29T12:00:00Z", -1),
            ("yesterday", -1),
            ("TTT", -1),
            ("é:ü", -1),
        ] {
            let expected = u64::try_from(after_noon_ms).ok().map(|ms| NOON_NS + ms * 1_000_000);
            assert_eq!(wall(text), expected, "{text:?}");
        }
        assert_eq!(wall("0.0000000019"), Some(NOON_NS + 1), "what is finer than a nanosecond is left out");
    }

    #[test]
    fn wall_times_read_and_written_agree() {
        assert_eq!(rfc3339_of(NOON_NS + 1_500_000_000), "2026-12-01T12:00:01.500Z");
        for days in (0..150_000).step_by(17) {
            let text = rfc3339_of(days * DAY_NS);
            assert_eq!(wall(&text), Some(days * DAY_NS), "{text}");
        }
    }
}
