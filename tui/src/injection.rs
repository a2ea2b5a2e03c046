//! Which variables put the tap into a job, and whether another tool has taken the one place there is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gputap_payload::{PayloadDir, SHIM_FILE};

/// The driver loads one library, at the first `cuInit`, from the path in this variable.
pub const INJECTION: &str = "CUDA_INJECTION64_PATH";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// Set these.
    Ours(Vec<(OsString, OsString)>),
    /// Another tool's library, which is left in its place.
    Taken(PathBuf),
}

/// The shim's own variable for what it does before any reader has come.
const START: &str = "GPUTAP_START";

/// `current` is what the variable holds now.
pub fn decide(current: Option<OsString>, replace: bool, payload: &PayloadDir) -> Injection {
    match current.filter(|path| !path.is_empty()) {
        Some(path) if !replace && !is_ours(Path::new(&path)) => Injection::Taken(path.into()),
        _ => Injection::Ours(variables(payload)),
    }
}

pub fn variables(payload: &PayloadDir) -> Vec<(OsString, OsString)> {
    vec![(INJECTION.into(), payload.shim().into())]
}

/// For a job started from here: recorded from its first kernel on, which may come before the reader does, unless its
/// environment says otherwise.
pub fn from_the_first_kernel(variables: &mut Vec<(OsString, OsString)>) {
    if std::env::var_os(START).is_none_or(|value| value.is_empty()) {
        variables.push((START.into(), "recording".into()));
    }
}

/// What to say where the place is taken.
pub fn words_for_taken(path: &Path) -> String {
    format!(
        "{INJECTION} is set to {} by another tool, and the driver loads one library only: the job runs without a tap.\n\
         Unset the variable, or give --replace-injection, to tap it instead.",
        path.display()
    )
}

/// This gputap's or another one's.
fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == SHIM_FILE)
}
