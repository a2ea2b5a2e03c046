//! An application that is no child of the test: a daemon, or a program that the application has started. It is talked to
//! through a folder: a FIFO for words, a file for answers.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::Found;

use crate::app::ANSWER;
use crate::reading::{self, wait_for};

/// The folder, and who answers through it once that is known.
pub struct Distant {
    pid: Option<u32>,
    folder: PathBuf,
    words: File,
    /// Answers that have been read.
    heard: usize,
}

impl Distant {
    /// Makes the folder; the application can then be told to have somebody answer through it.
    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("gputap-distant-{}-{number}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let fifo = folder.join("words");
        let path = CString::new(fifo.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: a whole string.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
        File::create(folder.join("answers")).expect("a file");
        // Both ends are ours, so that no open waits for the other; what reads has only its own.
        let words = File::options().read(true).write(true).open(fifo).expect("a pipe");
        Self { pid: None, folder, words, heard: 0 }
    }

    pub fn folder(&self) -> &str {
        self.folder.to_str().expect("UTF-8")
    }

    /// Waits for who answers.
    pub fn meet(&mut self) -> u32 {
        self.tell("pid");
        // A daemon has answered before it was asked.
        let pid = std::iter::from_fn(|| Some(self.hear("pid"))).find_map(|answer| answer.parse().ok());
        self.pid = pid;
        self.pid()
    }

    pub fn pid(&self) -> u32 {
        self.pid.expect("met")
    }

    pub fn tell(&mut self, words: &str) {
        writeln!(self.words, "{words}").expect("a pipe");
    }

    pub fn ask(&mut self, words: &str) -> String {
        self.tell(words);
        self.hear(words)
    }

    fn hear(&mut self, words: &str) -> String {
        let path = self.folder.join("answers");
        let heard = self.heard;
        let said = || fs::read_to_string(&path).expect("a file");
        let answer = wait_for(
            "an answer",
            || format!("to {words:?}: {:?} says {:?}", self.pid, said()),
            || {
                let said = said();
                let whole = said.split_inclusive('\n').filter(|line| line.ends_with('\n'));
                let answer = whole.filter_map(|line| line.strip_prefix(ANSWER)).nth(heard)?;
                Some(answer.trim_end().to_owned())
            },
        );
        self.heard += 1;
        answer
    }

    pub fn found(&self) -> Found {
        reading::wait_for_tap(self.pid())
    }

    pub fn attached(&self) -> Attached {
        Attached::open(&self.found()).expect("a whole segment")
    }
}

impl Drop for Distant {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            // SAFETY: no memory is passed. Its parent has not reaped it unless the test asked for that, and then it is
            // `forget`ten.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Has the application's child reaped: its exit code. It is not killed any more.
pub fn reap(app: &mut crate::app::App, mut distant: Distant) -> String {
    let pid = distant.pid.take().expect("met");
    app.ask(&format!("reap {pid}"))
}
