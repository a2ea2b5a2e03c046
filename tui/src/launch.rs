//! Starting a job with the tap in it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::time::{SystemTime, UNIX_EPOCH};

use gputap_ringbuf::event::EventKind;

use crate::error::{Error, Result};
use crate::injection::{self, Injection, Places};
use crate::job::JobCommand;
use crate::output::remark;
use crate::tap::{Family, LAUNCH};

/// A job that is ready to start, and the means to find its taps.
pub struct Prepared {
    pub job: JobCommand,
    pub family: Family,
}

/// Prepares the job to record `kinds`, or, where another tool has the driver's one place for a library, says so and
/// becomes the job, so that it runs as if gputap were not there.
pub fn prepare(words: &[OsString], replace_injection: bool, kinds: u64) -> Result<Prepared> {
    let payload = gputap_payload::install_into_user_folder()?;
    let places = Places::now();
    match places.decide(replace_injection, &payload) {
        Injection::Ours(variables) => {
            let other = places.other_nvtx().filter(|_| kinds & EventKind::Marker.bit() != 0);
            if let Some(path) = other {
                remark(&injection::words_for_other_nvtx(path));
            }
            Ok(prepared(words, variables, kinds))
        }
        Injection::Taken(path) => {
            remark(&injection::words_for_taken(&path));
            let job = JobCommand::new(words, Vec::new());
            // Returns only where it failed.
            let source = job.to_command().exec();
            Err(Error::NotStarted { program: job.program, source })
        }
    }
}

/// With these variables, and the mark by which its processes are known.
pub fn prepared(words: &[OsString], mut variables: Vec<(OsString, OsString)>, kinds: u64) -> Prepared {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mark = format!("{}-{}", std::process::id(), since.as_nanos());
    injection::from_the_first_kernel(&mut variables, kinds);
    variables.push((LAUNCH.into(), mark.clone().into()));
    Prepared { job: JobCommand::new(words, variables), family: Family::before(mark) }
}
