//! The parent's half: starts the child, asks it, and never waits longer than a deadline.

use super::candidates::Candidate;
use super::protocol::{MAX_CUBIN_BYTES, REPLY_HEAD_BYTES, ReplyHead};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Times that a child is started again after it crashed, hung or talked nonsense.
pub const MAX_RESTARTS: u32 = 3;

/// How to become the child: a program and the arguments that stand before the library's path.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
}

impl Program {
    /// This very binary with [`super::CHILD_ARGUMENT`].
    pub fn this_binary() -> io::Result<Program> {
        Ok(Program { path: std::env::current_exe()?, arguments: vec![super::CHILD_ARGUMENT.to_owned()] })
    }
}

/// How long the parent waits.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// For a child to load its library.
    pub start: Duration,
    /// For any cubin.
    pub cubin: Duration,
    /// On top, for every MiB of it.
    pub cubin_mib: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            start: Duration::from_secs(20),
            cubin: Duration::from_secs(10),
            cubin_mib: Duration::from_millis(250),
        }
    }
}

/// The libcupti that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub path: PathBuf,
    /// As `cuptiGetVersion` gives it: 130001 is 13.0 update 1.
    pub version: u32,
}

/// Why there is no CUPTI checksum. The words are what a screen shows beside the empty field.
#[derive(Debug, thiserror::Error)]
pub enum CrcError {
    #[error("no libcupti to compute it with: {tried}; set GPUTAP_CUPTI to one")]
    NoLibrary { tried: String },
    #[error("{program} could not be started: {source}")]
    Start { program: PathBuf, source: io::Error },
    #[error("the helper process said: {text}")]
    Refused { text: String },
    #[error("the helper process ended ({how})")]
    Ended { how: String },
    #[error("the helper process did not answer within {waited_ms} ms and was killed")]
    Hung { waited_ms: u128 },
    #[error("the helper process answered nonsense and was killed")]
    BadReply,
    #[error("cuptiGetCubinCrc returned {code}{}", hint(*code))]
    Cupti { code: u32 },
    #[error("cuptiGetCubinCrc gave {actual:#x} for a buffer whose checksum is {expected:#x}")]
    WrongValue { expected: u64, actual: u64 },
    #[error("a cubin of {size} bytes is more than {MAX_CUBIN_BYTES}")]
    TooLarge { size: u64 },
    #[error("given up after {restarts} restarts; the last time: {last}")]
    GivenUp { restarts: u32, last: String },
}

fn hint(code: u32) -> &'static str {
    match code {
        1 => " (invalid parameter)",
        999 => " (unknown; CUPTI 13.3 and later say so where no driver is installed)",
        _ => "",
    }
}

impl CrcError {
    /// Whether the child is of no more use after it.
    fn ends_the_child(&self) -> bool {
        !matches!(self, CrcError::Cupti { .. } | CrcError::TooLarge { .. })
    }
}

/// Asks children for checksums, one cubin at a time, over the candidates until one works.
#[derive(Debug)]
pub struct CuptiCrc {
    program: Program,
    candidates: Vec<Candidate>,
    deadlines: Deadlines,
    running: Option<Running>,
    library: Option<Library>,
    restarts: u32,
    given_up: Option<String>,
}

impl CuptiCrc {
    /// Starts nothing yet: the first cubin does.
    pub fn new(program: Program, candidates: Vec<Candidate>, deadlines: Deadlines) -> CuptiCrc {
        CuptiCrc { program, candidates, deadlines, running: None, library: None, restarts: 0, given_up: None }
    }

    /// The library in use, once a cubin has been asked for.
    pub fn library(&self) -> Option<&Library> {
        self.library.as_ref()
    }

    /// CUPTI's checksum of `cubin`. Waits for the child, at most its deadlines.
    ///
    /// # Errors
    /// Every [`CrcError`] is final for this cubin. After three restarts, or when no candidate works, later
    /// cubins fail at once.
    pub fn crc(&mut self, cubin: &[u8]) -> Result<u64, CrcError> {
        let size = cubin.len() as u64;
        if size > MAX_CUBIN_BYTES {
            return Err(CrcError::TooLarge { size });
        }
        let deadline = self.deadlines.cubin + self.deadlines.cubin_mib * u32::try_from(size >> 20).unwrap_or(u32::MAX);
        let result = self.running()?.ask(cubin, deadline);
        if let Err(error) = &result
            && error.ends_the_child()
        {
            self.running = None;
        }
        result
    }

    fn running(&mut self) -> Result<&mut Running, CrcError> {
        if self.running.is_none() {
            if let Some(last) = &self.given_up {
                return Err(CrcError::GivenUp { restarts: self.restarts, last: last.clone() });
            }
            let started = self.start()?;
            self.running = Some(started);
        }
        // Just filled; the error stands for a state that does not occur.
        self.running.as_mut().ok_or(CrcError::BadReply)
    }

    /// The library that worked before is the one to start again; else the candidates in their order.
    fn start(&mut self) -> Result<Running, CrcError> {
        if let Some(library) = self.library.clone() {
            return self.restart(&library);
        }
        let mut tried = Vec::new();
        for candidate in &self.candidates {
            match Running::start(&self.program, &candidate.path, self.deadlines.start) {
                Ok((running, version)) => {
                    self.library = Some(Library { path: candidate.path.clone(), version });
                    return Ok(running);
                }
                Err(error) => tried.push(format!("{} ({}): {error}", candidate.path.display(), candidate.origin)),
            }
        }
        let tried = if tried.is_empty() { "none was found".to_owned() } else { tried.join("; ") };
        self.given_up = Some(format!("no libcupti: {tried}"));
        Err(CrcError::NoLibrary { tried })
    }

    fn restart(&mut self, library: &Library) -> Result<Running, CrcError> {
        self.restarts += 1;
        let started = Running::start(&self.program, &library.path, self.deadlines.start);
        if self.restarts >= MAX_RESTARTS {
            self.given_up = Some(match &started {
                Ok(_) => "the helper process ended too often".to_owned(),
                Err(error) => error.to_string(),
            });
        }
        started.map(|(running, _)| running)
    }
}

/// Starts a child for one library, asks it the known checksum, and ends it.
///
/// # Errors
/// Why this library is of no use.
pub fn probe(program: &Program, library: &Path, deadlines: &Deadlines) -> Result<Library, CrcError> {
    let (_, version) = Running::start(program, library, deadlines.start)?;
    Ok(Library { path: library.to_owned(), version })
}

/// A buffer whose checksum is known; every CUPTI from 11.8 to 13.5 gives the same.
const SELF_TEST_BYTES: [u8; 64] = self_test_bytes();
const SELF_TEST_CRC: u64 = 0x7de7_7325;

const fn self_test_bytes() -> [u8; 64] {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i as u8).wrapping_mul(37).wrapping_add(11);
        i += 1;
    }
    bytes
}

/// One live child and our end of its socket; killed and reaped when dropped.
#[derive(Debug)]
struct Running {
    child: Child,
    socket: OwnedFd,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(program: &Program, library: &Path, deadline: Duration) -> Result<(Running, u32), CrcError> {
        let start_error = |source| CrcError::Start { program: program.path.clone(), source };
        let (ours, theirs) = UnixStream::pair().map_err(start_error)?;
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .arg(library)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Newer CUPTIs look for the driver; nothing must be injected into the helper.
            .env_remove("CUDA_INJECTION64_PATH")
            .env_remove("NVTX_INJECTION64_PATH")
            .spawn()
            .map_err(start_error)?;
        let mut running = Running { child, socket: ours.into() };
        let until = Until::after(deadline);
        let version = match running.reply(until)? {
            Reply::Hello { version } => version,
            Reply::Failed(text) => return Err(CrcError::Refused { text }),
            _ => return Err(CrcError::BadReply),
        };
        match running.ask(&SELF_TEST_BYTES, deadline)? {
            SELF_TEST_CRC => Ok((running, version)),
            actual => Err(CrcError::WrongValue { expected: SELF_TEST_CRC, actual }),
        }
    }

    fn ask(&mut self, cubin: &[u8], deadline: Duration) -> Result<u64, CrcError> {
        let until = Until::after(deadline);
        self.send(&(cubin.len() as u64).to_le_bytes(), until)?;
        self.send(cubin, until)?;
        match self.reply(until)? {
            Reply::Crc(crc) => Ok(crc),
            Reply::CuptiResult(code) => Err(CrcError::Cupti { code }),
            Reply::Failed(text) => Err(CrcError::Refused { text }),
            Reply::Hello { .. } => Err(CrcError::BadReply),
        }
    }

    fn send(&mut self, mut bytes: &[u8], until: Until) -> Result<(), CrcError> {
        while !bytes.is_empty() {
            // NOSIGNAL: a child that died must not kill us by SIGPIPE.
            match send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::OUT, until)?,
                Err(rustix::io::Errno::INTR) => {}
                // It may have said why before it went.
                Err(_) => return Err(self.last_words(until)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8], until: Until) -> Result<(), CrcError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match recv(&self.socket, &mut bytes[filled..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(self.ended()),
                Ok((_, received)) => filled += received.min(bytes.len() - filled),
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::IN, until)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    fn reply(&mut self, until: Until) -> Result<Reply, CrcError> {
        let mut head = [0; REPLY_HEAD_BYTES];
        self.receive(&mut head, until)?;
        Ok(match ReplyHead::decode(head).ok_or(CrcError::BadReply)? {
            ReplyHead::Hello { version } => Reply::Hello { version },
            ReplyHead::Crc(crc) => Reply::Crc(crc),
            ReplyHead::CuptiResult(code) => Reply::CuptiResult(code),
            ReplyHead::Failed { text_bytes } => {
                let mut text = vec![0; text_bytes as usize];
                self.receive(&mut text, until)?;
                let text = String::from_utf8_lossy(&text);
                Reply::Failed(crate::symbols::escape::for_screen(&text, 1024))
            }
        })
    }

    fn last_words(&mut self, until: Until) -> CrcError {
        match self.reply(until) {
            Ok(Reply::Failed(text)) => CrcError::Refused { text },
            Ok(_) => CrcError::BadReply,
            Err(error) => error,
        }
    }

    fn wait(&self, event: PollFlags, until: Until) -> Result<(), CrcError> {
        let left = until.left().ok_or(CrcError::Hung { waited_ms: until.waited.as_millis() })?;
        // The rest of a deadline is seconds; a poll that ends early is asked again.
        let timeout = Timespec { tv_sec: left.as_secs().min(3600) as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(&self.socket, event)], Some(&timeout));
        Ok(())
    }

    /// The socket has closed: the child is ending; ask how. It is killed in case it only closed the socket.
    fn ended(&mut self) -> CrcError {
        let until = Until::after(Duration::from_millis(500));
        while until.left().is_some() {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(Some(status)) => return CrcError::Ended { how: status.to_string() },
                Err(error) => return CrcError::Ended { how: error.to_string() },
            }
        }
        CrcError::Ended { how: "it closed its socket".to_owned() }
    }
}

enum Reply {
    Hello { version: u32 },
    Crc(u64),
    CuptiResult(u32),
    Failed(String),
}

/// A deadline, and how long it was.
#[derive(Clone, Copy)]
struct Until {
    at: Instant,
    waited: Duration,
}

impl Until {
    fn after(waited: Duration) -> Until {
        Until { at: Instant::now() + waited, waited }
    }

    fn left(self) -> Option<Duration> {
        self.at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}
