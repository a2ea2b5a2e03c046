//! What a job shall do, and how to say it in words on a command line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A job. Words are `field=value`, for example `libcuda=/tmp/libfake_cuda.so threads=4 seconds=1.5`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSpec {
    /// The driver library to open.
    pub libcuda: PathBuf,
    pub threads: usize,
    /// The job ends after so many seconds; 0 for no limit.
    pub seconds: f64,
    /// The job ends after so many steps a thread; 0 for no limit.
    pub steps: u64,
    /// Target rate of all threads together; 0 for as fast as possible.
    pub kernels_per_second: u64,
    /// Layers of the model: a step launches 13 + 28 times as many kernels.
    pub layers: usize,
    /// Modules that stay loaded.
    pub modules: usize,
    /// A module's size lies between these, in bytes.
    pub module_bytes_min: usize,
    pub module_bytes_max: usize,
    /// Every step of every thread also loads a module, launches its kernels and unloads it.
    pub load_churn: bool,
    /// How many different modules the churn goes round.
    pub churn_images: usize,
    /// Every step of every thread also makes a context and destroys it.
    pub context_churn: bool,
    /// A thread waits for its streams after so many steps; 0 for only at the end.
    pub sync_every_steps: u64,
    /// Multiplies the kernels' durations; 0 picks what the rate needs, at most 1.
    pub time_scale: f64,
    pub seed: u64,
    /// In a child process: period of the lines that tell each thread's progress; 0 for none.
    pub heartbeat_ms: u64,
    /// In a child process: where the report goes; None for stdout.
    pub report_file: Option<PathBuf>,
    /// In a child process: the job also ends when its stdin is closed, so that it does not outlive who started it.
    pub until_stdin_closes: bool,
}

impl Default for JobSpec {
    fn default() -> Self {
        Self {
            libcuda: PathBuf::new(),
            threads: 1,
            seconds: 0.0,
            steps: 0,
            kernels_per_second: 0,
            layers: 6,
            modules: 8,
            module_bytes_min: 8 << 10,
            module_bytes_max: 4 << 20,
            load_churn: false,
            churn_images: 16,
            context_churn: false,
            sync_every_steps: 10,
            time_scale: 0.0,
            seed: 1,
            heartbeat_ms: 0,
            report_file: None,
            until_stdin_closes: false,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    #[error("{word:?} is not a field=value word")]
    NotAWord { word: String },
    #[error("the job cannot be read from its words: {0}")]
    Field(#[from] serde_json::Error),
    #[error("{field} is {value}, but must be {must}")]
    Range { field: &'static str, value: String, must: &'static str },
}

impl JobSpec {
    /// Reads `field=value` words; fields that are not named keep their defaults.
    pub fn from_words<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Result<Self, SpecError> {
        let mut fields = Map::new();
        for word in words {
            let word = word.as_ref();
            let (field, value) = word.split_once('=').ok_or_else(|| SpecError::NotAWord { word: word.to_owned() })?;
            let is_path = matches!(field, "libcuda" | "report_file");
            let text = || Value::String(value.to_owned());
            let value = if is_path { text() } else { serde_json::from_str(value).unwrap_or_else(|_| text()) };
            fields.insert(field.to_owned(), value);
        }
        let spec: Self = serde_json::from_value(Value::Object(fields))?;
        spec.checked()
    }

    /// The words that [`JobSpec::from_words`] reads back. Paths must be UTF-8.
    pub fn to_words(&self) -> Result<Vec<String>, SpecError> {
        let Value::Object(fields) = serde_json::to_value(self)? else { return Ok(Vec::new()) };
        let word = |(field, value): (String, Value)| match value {
            Value::Null => None,
            Value::String(text) => Some(format!("{field}={text}")),
            other => Some(format!("{field}={other}")),
        };
        Ok(fields.into_iter().filter_map(word).collect())
    }

    fn checked(self) -> Result<Self, SpecError> {
        let range = |field, value: String, must| Err(SpecError::Range { field, value, must });
        if !(1..=256).contains(&self.threads) {
            return range("threads", self.threads.to_string(), "1 to 256");
        }
        if !(1..=4096).contains(&self.modules) {
            return range("modules", self.modules.to_string(), "1 to 4096");
        }
        if self.load_churn && !(1..=4096).contains(&self.churn_images) {
            return range("churn_images", self.churn_images.to_string(), "1 to 4096");
        }
        if self.module_bytes_min > self.module_bytes_max || self.module_bytes_max > 1 << 30 {
            return range("module_bytes_max", self.module_bytes_max.to_string(), "module_bytes_min to 1 GiB");
        }
        if !(0.0..=1e6).contains(&self.time_scale) || !(0.0..=1e9).contains(&self.seconds) {
            return range("time_scale or seconds", self.time_scale.to_string(), "a number that is not negative");
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        let spec = JobSpec {
            libcuda: "/tmp/123".into(),
            threads: 4,
            seconds: 1.5,
            load_churn: true,
            report_file: Some("7".into()),
            ..JobSpec::default()
        };
        assert_eq!(JobSpec::from_words(spec.to_words().unwrap()).unwrap(), spec);
        assert!(matches!(JobSpec::from_words(["threads"]), Err(SpecError::NotAWord { .. })));
        assert!(matches!(JobSpec::from_words(["thread=4"]), Err(SpecError::Field(_))));
        assert!(matches!(JobSpec::from_words(["threads=0"]), Err(SpecError::Range { .. })));
    }
}
