//! Whether a value may be: asked of the option itself, so that a setting can be what its flag can be and nothing else.

use std::error::Error;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::{SETTINGS, Setting};

/// Below this two names have little in common.
const SIMILAR: f64 = 0.75;

pub fn argument<'a>(setting: &Setting, cli: &'a Command) -> Option<&'a Arg> {
    let command = match setting.commands.first() {
        Some(name) => cli.find_subcommand(name)?,
        None => cli,
    };
    command.get_arguments().find(|argument| argument.get_id() == setting.option)
}

/// What would be right, where it may not.
pub fn value(setting: &Setting, cli: &Command, text: &str) -> Result<(), String> {
    let Some(argument) = argument(setting, cli) else { return Err("cannot be set here".to_owned()) };
    let alone = Command::new("gputap").no_binary_name(true).disable_help_flag(true).arg(argument.clone());
    let word = format!("--{}={text}", argument.get_long().unwrap_or_default());
    let Err(error) = alone.try_get_matches_from([word]) else { return Ok(()) };
    Err(match (error.kind(), error.get(ContextKind::ValidValue), error.source()) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(right)), _) if !text.is_empty() => {
            format!("{text:?} is none of {}", right.join(", "))
        }
        (ErrorKind::ValueValidation, _, Some(why)) => format!("{text:?}: {why}"),
        _ => format!("{text:?} cannot be used"),
    })
}

/// What to say of a key that is none.
pub fn unknown(key: &str) -> String {
    let nearest = SETTINGS
        .iter()
        .map(|setting| (setting.key, strsim::jaro_winkler(key, setting.key)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    match nearest {
        Some((right, similar)) if similar >= SIMILAR => format!("no such setting: {key}; did you mean {right}?"),
        _ => {
            let all: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
            format!("no such setting: {key}; there are {}", all.join(", "))
        }
    }
}
