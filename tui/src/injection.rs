//! Which variables put the tap into a job, and whether another tool has taken the one place there is.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use gputap_payload::{PayloadDir, SHIM_FILE};
use gputap_ringbuf::event::{BASIC_KINDS, EventKind};

/// The driver loads one library, at the first `cuInit`, from the path in this variable.
pub const INJECTION: &str = "CUDA_INJECTION64_PATH";
/// An NVTX library hands its table to the one that this variable names, at its first call.
pub const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// Set these.
    Ours(Vec<(OsString, OsString)>),
    /// Another tool's library, which is left in its place.
    Taken(PathBuf),
}

/// The shim's own variables: what it does before any reader has come, which kinds it records then, and whether launches
/// call it.
const START: &str = "GPUTAP_START";
const KINDS: &str = "GPUTAP_KINDS";
const LAUNCHES: &str = "GPUTAP_LAUNCHES";

/// What an environment says of the two places.
#[derive(Clone, Debug, Default)]
pub struct Places {
    cuda: Option<OsString>,
    nvtx: Option<OsString>,
}

impl Places {
    pub fn now() -> Places {
        let value = |name| std::env::var_os(name).filter(|path| !path.is_empty());
        Places { cuda: value(INJECTION), nvtx: value(NVTX_INJECTION) }
    }

    pub fn decide(&self, replace: bool, payload: &PayloadDir) -> Injection {
        match &self.cuda {
            Some(path) if !replace && !is_ours(path) => Injection::Taken(path.into()),
            _ => Injection::Ours(self.variables(&payload.shim())),
        }
    }

    /// Another tool's, or CUPTI itself, which NVTX ranges go to: it is left.
    pub fn other_nvtx(&self) -> Option<&Path> {
        self.nvtx.as_deref().filter(|path| !is_ours(path)).map(Path::new)
    }

    /// Those that put `shim` into a job.
    pub fn variables(&self, shim: &Path) -> Vec<(OsString, OsString)> {
        let mut variables = vec![(INJECTION.into(), shim.into())];
        if self.other_nvtx().is_none() {
            variables.push((NVTX_INJECTION.into(), shim.into()));
        }
        variables
    }
}

/// For a job started from here: what is asked for is recorded from its first kernel on, which may come before the reader
/// does, unless its environment says otherwise.
pub fn from_the_first_kernel(variables: &mut Vec<(OsString, OsString)>, kinds: u64) {
    if std::env::var_os(START).is_none_or(|value| value.is_empty()) {
        variables.push((START.into(), "recording".into()));
    }
    if kinds != BASIC_KINDS {
        let names: Vec<&str> = EventKind::in_mask(kinds).map(EventKind::name).collect();
        variables.push((KINDS.into(), names.join(",").into()));
    }
    if kinds & EventKind::Launch.bit() != 0 {
        variables.push((LAUNCHES.into(), "1".into()));
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

pub fn words_for_other_nvtx(path: &Path) -> String {
    format!(
        "{NVTX_INJECTION} is set to {}, which is left: NVTX ranges are recorded only if that is the job's libcupti; unset \
         it to record them.",
        path.display()
    )
}

/// This gputap's or another one's.
fn is_ours(path: &OsStr) -> bool {
    Path::new(path).file_name().is_some_and(|name| name == SHIM_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(variables: &[(OsString, OsString)]) -> Vec<(&str, &str)> {
        variables.iter().filter_map(|(name, value)| name.to_str().zip(value.to_str())).collect()
    }

    #[test]
    fn both_places_are_ours_unless_another_has_that_of_nvtx() {
        let shim = Path::new("/cache/libgputap_shim.so");
        let with = |nvtx: Option<&str>| Places { cuda: None, nvtx: nvtx.map(OsString::from) };
        let both = [(INJECTION, "/cache/libgputap_shim.so"), (NVTX_INJECTION, "/cache/libgputap_shim.so")];
        assert_eq!(names(&with(None).variables(shim)), both);
        // An older gputap's.
        assert_eq!(names(&with(Some("/old/libgputap_shim.so")).variables(shim)), both);
        let other = with(Some("/opt/libcupti.so"));
        assert_eq!(names(&other.variables(shim)), both[..1]);
        assert!(other.other_nvtx().is_some_and(|path| words_for_other_nvtx(path).contains("/opt/libcupti.so")));
    }

    #[test]
    fn a_job_records_from_its_first_kernel_on_what_is_asked_for() {
        let set = |kinds| {
            let mut variables = Vec::new();
            from_the_first_kernel(&mut variables, kinds);
            names(&variables).into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(set(BASIC_KINDS), ["GPUTAP_START=recording"]);
        let (graph, launch) = (EventKind::Graph.bit(), EventKind::Launch.bit());
        assert_eq!(set(graph), ["GPUTAP_START=recording", "GPUTAP_KINDS=graph"]);
        let all = ["GPUTAP_START=recording", "GPUTAP_KINDS=graph,launch", "GPUTAP_LAUNCHES=1"];
        assert_eq!(set(graph | launch), all);
    }
}
