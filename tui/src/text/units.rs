//! Units. Everything here is at most eight columns wide, save where a name says otherwise.

/// `999 ns`, `12.3 µs`, `1.23 s`, `3h 25m`: three significant digits.
pub fn duration_ns(ns: f64) -> String {
    match ns {
        ns if !ns.is_finite() || ns < 0.0 => "-".into(),
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} µs", three_digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        ns if ns < 999.5e9 => format!("{} s", three_digits(ns / 1e9)),
        ns => long_duration((ns / 1e9) as u64),
    }
}

/// The same without blanks, in at most seven columns.
pub fn dense_duration_ns(ns: f64) -> String {
    duration_ns(ns).replace(' ', "")
}

fn long_duration(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600) {
        (0, 0) => format!("{}m {:02}s", seconds / 60, seconds % 60),
        (0, hours) => format!("{hours}h {:02}m", seconds % 3_600 / 60),
        (days @ 1..1000, _) => format!("{days}d {:02}h", seconds % 86_400 / 3_600),
        (days, _) => format!("{} d", scaled(days as f64)),
    }
}

/// `00:01:23`, and with days `3d 04:05:06`.
pub fn age(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match seconds / 86_400 {
        0 => clock,
        days => format!("{days}d {clock}"),
    }
}

/// Exact up to 999,999, three digits with a prefix beyond.
pub fn count(number: u64) -> String {
    if number < 1_000_000 { grouped(number) } else { scaled(number as f64) }
}

/// Exact, in groups of three, as wide as it takes: for loss, of which every single one counts.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn bytes(number: u64) -> String {
    if number < 1000 { format!("{number} B") } else { format!("{}B", scaled(number as f64)) }
}

/// Bytes in a time, `-` where no time passed.
pub fn bytes_per_s(number: u64, ns: u64) -> String {
    if ns == 0 {
        return "-".into();
    }
    let rate = number as f64 / ns as f64 * 1e9;
    if rate < 999.5 { format!("{rate:.0} B/s") } else { format!("{}B/s", scaled(rate)) }
}

pub fn per_s(rate: f64) -> String {
    match rate {
        rate if !rate.is_finite() || rate < 0.0 => "-".into(),
        rate if rate < 999.5 => format!("{}/s", three_digits(rate)),
        rate => format!("{}/s", scaled(rate)),
    }
}

/// Of a share from 0 to 1: `42.1%`, `100%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if !percent.is_finite() => "-".into(),
        percent if percent >= 99.95 => format!("{percent:.0}%"),
        percent => format!("{percent:.1}%"),
    }
}

/// A launch: `512×256`, `8,8,1×128`; dimensions of 1 at the end are left out.
pub fn shape(grid: [u32; 3], block: [u32; 3]) -> String {
    format!("{}×{}", dimensions(grid), dimensions(block))
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (0 | 1, 0 | 1) => x.to_string(),
        (y, 0 | 1) => format!("{x},{y}"),
        (y, z) => format!("{x},{y},{z}"),
    }
}

/// CUPTI counts its API: 18 is 11.8, later 130000 is 13.0.
pub fn cupti_version(version: u32) -> String {
    match version {
        0 => "none".into(),
        version if version >= 10_000 => format!("{}.{}", version / 10_000, version % 10_000 / 100),
        version => format!("API {version}"),
    }
}

fn scaled(number: f64) -> String {
    let prefixes = ["k", "M", "G", "T", "P", "E"];
    let mut scaled = number;
    let mut prefix = "";
    for next in prefixes {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1e3;
        prefix = next;
    }
    format!("{} {prefix}", three_digits(scaled))
}

fn three_digits(number: f64) -> String {
    match number {
        number if number < 9.995 => format!("{number:.2}"),
        number if number < 99.95 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let cases: [(f64, &str); 14] = [
            (0.0, "0 ns"),
            (999.0, "999 ns"),
            (999.6, "1.00 µs"),
            (1_500.0, "1.50 µs"),
            (12_340.0, "12.3 µs"),
            (999_499.0, "999 µs"),
            (999_600.0, "1.00 ms"),
            (1.5e9, "1.50 s"),
            (1e12, "16m 40s"),
            (7_384e9, "2h 03m"),
            (200_000e9, "2d 07h"),
            (u64::MAX as f64, "214 k d"),
            (f64::NAN, "-"),
            (-1.0, "-"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration_ns(ns), text);
        }
    }

    #[test]
    fn counts_and_bytes() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999_999), "999,999");
        assert_eq!(count(1_000_000), "1.00 M");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234_000), "1.23 MB");
        assert_eq!(bytes_per_s(2_000_000_000, 1_000_000_000), "2.00 GB/s");
        assert_eq!(bytes_per_s(1, 0), "-");
        assert_eq!(per_s(12_345.0), "12.3 k/s");
        assert_eq!(percent(0.4213), "42.1%");
        assert_eq!(percent(1.0), "100%");
    }

    #[test]
    fn nothing_is_wider_than_its_column() {
        for shift in 0..64 {
            let number = u64::MAX >> shift;
            for text in [duration_ns(number as f64), count(number), bytes(number)] {
                assert!(text.chars().count() <= 8, "{text}");
            }
        }
    }

    #[test]
    fn shapes_and_versions() {
        assert_eq!(shape([512, 1, 1], [256, 1, 1]), "512×256");
        assert_eq!(shape([8, 1, 2], [16, 16, 1]), "8,1,2×16,16");
        assert_eq!(cupti_version(130_100), "13.1");
        assert_eq!(cupti_version(18), "API 18");
    }
}
