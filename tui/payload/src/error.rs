use std::fmt;
use std::io;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

/// Why a folder cannot hold the libraries.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: cannot {action}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: belongs to user {owner}, not to {user} who runs gputap", path.display())]
    ForeignOwner { path: PathBuf, owner: u32, user: u32 },
    #[error("{}: is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{}: lies on a mount with noexec, from which no library can be loaded", path.display())]
    NoExec { path: PathBuf },
    #[error(
        "no folder can hold the libraries that gputap loads into other programs:{}\n\
         set XDG_CACHE_HOME to a folder of your own on a mount that allows execution",
        Lines(refused)
    )]
    NoFolder { refused: Vec<Error> },
}

struct Lines<'a>(&'a [Error]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}
