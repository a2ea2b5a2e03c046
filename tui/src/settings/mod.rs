//! What a person wants every time: a flag, else a variable, else a line of the settings file, else the default. A setting
//! is the default of an option, so that whoever reads the option need not know of settings, and `--help` shows what holds.

mod check;
mod file;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory};
use serde::Serialize;

use crate::cli::Cli;
use file::Line;

/// An option that may be set for good.
#[derive(Debug)]
pub struct Setting {
    /// In the file; a dot is a table.
    pub key: &'static str,
    pub variable: &'static str,
    /// The option, by its name within clap.
    option: &'static str,
    /// The commands that have it; none where all do.
    commands: &'static [&'static str],
}

/// The shim's variables, which are in the same environment, have other names: `GPUTAP_KINDS` is one of them.
pub const SETTINGS: &[Setting] = &[
    setting("color", "GPUTAP_COLOR", "color", &[]),
    setting("theme", "GPUTAP_THEME", "theme", &[]),
    setting("ascii", "GPUTAP_ASCII", "ascii", &[]),
    setting("refresh", "GPUTAP_REFRESH", "refresh", &["top", "demo"]),
    setting("rows", "GPUTAP_ROWS", "rows", &["top", "demo"]),
    setting("kinds", "GPUTAP_READER_KINDS", "kinds", &["top", "record"]),
    setting("record.output", "GPUTAP_RECORD_OUTPUT", "output", &["record"]),
];

const fn setting(
    key: &'static str,
    variable: &'static str,
    option: &'static str,
    commands: &'static [&'static str],
) -> Setting {
    Setting { key, variable, option, commands }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { line: usize },
    Variable(&'static str),
    Flag,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub text: String,
    pub origin: Origin,
}

/// All settings as they hold, and what was wrong with what was said of them.
#[derive(Debug, Default)]
pub struct Settings {
    /// Where the file is, or would be; none without a home.
    pub file: Option<PathBuf>,
    pub file_exists: bool,
    /// In the order of `SETTINGS`.
    pub values: Vec<Value>,
    /// A line each, with the place and what would be right.
    pub complaints: Vec<String>,
}

impl Settings {
    /// From this process's environment and the user's file.
    pub fn load() -> Settings {
        let variable = crate::abilities::environment;
        let Some(path) = file::path(&variable) else { return Settings::resolve(None, &variable) };
        let read = file::read(&path);
        let place = path.display().to_string();
        let (text, trouble) = match read {
            Ok(text) => (text, None),
            Err(error) => (None, Some(format!("{place}: {error}; the settings in it do not hold"))),
        };
        let exists = text.is_some();
        let mut settings = Settings::resolve(text.as_deref().map(|text| (place.as_str(), text)), &variable);
        settings.complaints.extend(trouble);
        Settings { file: Some(path), file_exists: exists, ..settings }
    }

    /// `file` is its name and what is in it.
    fn resolve(file: Option<(&str, &str)>, variable: &dyn Fn(&str) -> Option<String>) -> Settings {
        let cli = Cli::command();
        let (place, mut lines, mut complaints) = ("", Vec::new(), Vec::new());
        let place = file.map_or(place, |(place, text)| {
            (lines, complaints) = file::lines(place, text);
            place
        });
        let mut values: Vec<Value> = SETTINGS.iter().map(|setting| default_of(setting, &cli)).collect();
        for Line { key, text, line } in lines {
            let Some(at) = SETTINGS.iter().position(|setting| setting.key == key) else {
                complaints.push(format!("{place}:{line}: {}", check::unknown(&key)));
                continue;
            };
            match text.and_then(|text| check::value(&SETTINGS[at], &cli, &text).map(|()| text)) {
                Ok(text) => values[at] = Value { text, origin: Origin::File { line } },
                Err(why) => complaints.push(format!("{place}:{line}: {key}: {why}; {} stands", values[at].text)),
            }
        }
        for (setting, value) in SETTINGS.iter().zip(&mut values) {
            let Some((name, text)) = said_by_variable(setting, variable) else { continue };
            match check::value(setting, &cli, &text) {
                Ok(()) => *value = Value { text, origin: Origin::Variable(name) },
                Err(why) => complaints.push(format!("{name}={text}: {why}; {} stands", value.text)),
            }
        }
        Settings { values, complaints, ..Settings::default() }
    }

    /// The command line with these values as its defaults.
    pub fn as_defaults_of(&self, mut command: Command) -> Command {
        for (setting, value) in SETTINGS.iter().zip(&self.values) {
            if value.origin == Origin::Default {
                continue;
            }
            let with_default = |command: Command| {
                command.mut_arg(setting.option, |argument| argument.default_value(value.text.clone()))
            };
            if setting.commands.is_empty() {
                command = with_default(command);
            }
            for name in setting.commands {
                command = command.mut_subcommand(name, with_default);
            }
        }
        command
    }

    /// Flags that every command has, and so this one too.
    pub fn with_flags(mut self, matches: &ArgMatches) -> Settings {
        for (setting, value) in SETTINGS.iter().zip(&mut self.values).filter(|(setting, _)| setting.commands.is_empty())
        {
            if matches.value_source(setting.option) == Some(ValueSource::CommandLine)
                && let Some(text) = matches.get_raw(setting.option).and_then(Iterator::last)
            {
                *value = Value { text: text.to_string_lossy().into_owned(), origin: Origin::Flag };
            }
        }
        self
    }

    pub fn rows(&self) -> Vec<Row> {
        let row = |(setting, value): (&Setting, &Value)| Row {
            setting: setting.key,
            value: value.text.clone(),
            from: match &value.origin {
                Origin::Default => "default".to_owned(),
                Origin::File { line } => {
                    format!("{}:{line}", self.file.as_deref().unwrap_or_else(|| "config.toml".as_ref()).display())
                }
                Origin::Variable(name) => (*name).to_owned(),
                Origin::Flag => format!("--{}", setting.option),
            },
            variable: setting.variable,
        };
        SETTINGS.iter().zip(&self.values).map(row).collect()
    }
}

/// One setting, for people and scripts.
#[derive(Debug, Serialize)]
pub struct Row {
    pub setting: &'static str,
    pub value: String,
    pub from: String,
    pub variable: &'static str,
}

fn default_of(setting: &Setting, cli: &Command) -> Value {
    let defaults = check::argument(setting, cli).map(|argument| argument.get_default_values()).unwrap_or_default();
    let text = defaults.first().map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
    Value { text, origin: Origin::Default }
}

/// NO_COLOR is a variable for this too, and everybody's.
fn said_by_variable(setting: &Setting, variable: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
    if let Some(text) = variable(setting.variable) {
        return Some((setting.variable, text));
    }
    let no_color = || variable("NO_COLOR").map(|_| ("NO_COLOR", "never".to_owned()));
    if setting.key == "color" { no_color() } else { None }
}
