//! What can go wrong, in words that say what happened, on what, and what to do.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Payload(#[from] gputap_payload::Error),
    #[error(transparent)]
    Find(#[from] gputap_ringbuf::discover::FindError),
    #[error(transparent)]
    Control(#[from] gputap_ringbuf::control::client::ControlError),
    #[error(transparent)]
    Attach(#[from] gputap_ringbuf::attach::AttachError),
    #[error("pid {pid}: {command} {what}, the tap is {state}{}{why}", if why.is_empty() { "" } else { ": " })]
    NotDone { command: &'static str, pid: u32, what: &'static str, state: &'static str, why: String },
    #[error(
        "no process has a tap. Start the job with `gputap top -- COMMAND` or `gputap record -- COMMAND`, or set the \
         variables that `gputap env` prints before starting it; `gputap demo` shows a simulated one"
    )]
    NoTaps,
    #[error("several processes have a tap:\n{list}give the pid of one: -p PID")]
    SeveralTaps { list: String },
    #[error("{what}\n{list}")]
    NoRemains { what: String, list: String },
    #[error("several processes left something:\n{list}give the pid or the segment of one: --post-mortem PID")]
    SeveralRemains { list: String },
    #[error(transparent)]
    Session(#[from] gputap_reader::session::SessionError),
    #[error(transparent)]
    Record(#[from] gputap_reader::recording::RecordError),
    #[error(transparent)]
    Cubins(#[from] gputap_reader::recording::ListError),
    #[error(transparent)]
    Report(#[from] gputap_report::ReportError),
    #[error(transparent)]
    Read(#[from] gputap_recording::ReadError),
    #[error(transparent)]
    Export(#[from] gputap_export::ExportError),
    #[error("{} is not empty: give a new folder, or remove what is in it", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{} of the settings cannot be used{}", .count, if *.count == 1 { ", and its default stands" } else { ", and their defaults stand" })]
    Settings { count: usize },
    #[error("gputap cannot find its own binary: {source}")]
    OwnBinary { source: io::Error },
    #[error("the simulated job failed: {words}")]
    SimJob { words: String },
    #[error("the terminal failed: {0}")]
    Terminal(io::Error),
    #[error("cannot watch for signals: {source}")]
    Signals { source: io::Error },
    #[error("{} cannot be started: {source}", program.display())]
    NotStarted { program: OsString, source: io::Error },
    #[error("cannot wait for process {pid}: {source}")]
    Wait { pid: u32, source: io::Error },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// Standard output is a pipe that its reader has closed: an end, not a failure.
    #[error("nobody reads standard output any more")]
    NobodyReads,
    #[error(
        "{0} is no folder with a recording; to watch a process: gputap top -p PID; to start one: gputap top -- COMMAND",
        path.display()
    )]
    NoFolder { path: PathBuf },
    #[error("{}: cannot {action}: {source}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// 2 where the command line has to say more, as for any other misuse of it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::SeveralTaps { .. } | Error::SeveralRemains { .. } | Error::Report(_) => 2,
            Error::NoFolder { .. } | Error::Settings { .. } => 2,
            Error::NotStarted { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => 127,
                io::ErrorKind::PermissionDenied => 126,
                _ => 1,
            },
            Error::NobodyReads => 0,
            _ => 1,
        }
    }
}
