use std::time::Duration;

use clap::Args;

/// Faster than this nobody reads; slower, the shim would take its reader for dead between two pictures, were it not
/// read all the time.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    Auto,
    Every(Duration),
}

impl Refresh {
    pub fn or(self, usual: Duration) -> Duration {
        match self {
            Refresh::Auto => usual,
            Refresh::Every(time) => time,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Table,
    Json,
    Csv,
}

/// How often, and how much.
#[derive(Args, Clone, Copy, Debug)]
pub struct Lines {
    /// Time between two pictures, as 250ms, 1s or 1m; auto is 200ms on a screen and 1s elsewhere
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = refresh)]
    pub refresh: Refresh,
    /// Rows of a printed table
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
}

/// Pictures for pipes and scripts, on a terminal too.
#[derive(Args, Clone, Copy, Debug)]
pub struct Rows {
    /// Print one picture after a refresh, and end; of a started job at its end
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print so many pictures, and end; a started job goes on unwatched
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print a JSON object a line
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print a row a kernel, with commas between (RFC 4180)
    #[arg(long)]
    pub csv: bool,
}

impl Rows {
    pub fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => Format::Table,
        }
    }

    /// Whether lines are wanted even where a live view could be drawn.
    pub fn are_wanted(&self) -> bool {
        self.once || self.count.is_some() || self.format() != Format::Table
    }

    pub fn limit(&self) -> Option<u64> {
        if self.once { Some(1) } else { self.count }
    }
}

fn refresh(text: &str) -> Result<Refresh, String> {
    if text == "auto" {
        return Ok(Refresh::Auto);
    }
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.or_else(|| humantime::parse_duration(text).ok());
    match time {
        Some(time) if (SHORTEST..=LONGEST).contains(&time) => Ok(Refresh::Every(time)),
        _ => Err("must be auto, or a time from 20ms to 24h, as 250ms, 1s or 1m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        let every = |milliseconds| Ok(Refresh::Every(Duration::from_millis(milliseconds)));
        assert_eq!(refresh("auto"), Ok(Refresh::Auto));
        for (text, milliseconds) in [("250ms", 250), ("1s", 1000), ("0.5", 500), ("2", 2000), ("1m", 60_000)] {
            assert_eq!(refresh(text), every(milliseconds), "{text}");
        }
        for text in ["", "0", "-1", "nan", "1e400", "5ms", "25h", "soon", "1 parsec"] {
            assert!(refresh(text).is_err_and(|why| why.contains("20ms")), "{text}");
        }
    }
}
