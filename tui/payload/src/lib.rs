//! The libraries that the gputap binary carries, and a folder of the user's own to load them from.
//!
//! What it guarantees:
//! - a library that [`install_into_user_folder`] names has the very bytes that this binary carries: they are compared,
//!   each time, since a file in a cache may be half-written, old or somebody else's;
//! - nobody else can write the folder: it is the user's own, mode 0700, and on a mount that allows execution, without
//!   which dlopen fails inside the tapped process where nobody sees why;
//! - starts at the same moment do not disturb each other: a file appears under its name whole or not at all.
//!
//! The fakes (a CUDA driver and a CUPTI without a GPU) lie in a folder below, so that no search path that holds the
//! shim ever finds them in place of the real ones.

#![forbid(unsafe_code)]

mod error;
mod folder;
mod store;

use std::path::{Path, PathBuf};

pub use error::{Error, Result};

static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libgputap_shim.so"));
static FAKE_CUDA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfake_cuda.so"));
static FAKE_CUPTI: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfake_cupti.so"));

/// File name of the shim, by which another gputap's shim is known too.
pub const SHIM_FILE: &str = "libgputap_shim.so";
const FAKE_CUDA_FILE: &str = "fakes/libcuda.so.1";
const FAKE_CUPTI_FILE: &str = "fakes/libcupti.so.13";

/// Where the libraries lie, verified when this was made.
#[derive(Clone, Debug)]
pub struct PayloadDir {
    folder: PathBuf,
}

impl PayloadDir {
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// For `CUDA_INJECTION64_PATH`.
    pub fn shim(&self) -> PathBuf {
        self.folder.join(SHIM_FILE)
    }

    pub fn fake_cuda(&self) -> PathBuf {
        self.folder.join(FAKE_CUDA_FILE)
    }

    pub fn fake_cupti(&self) -> PathBuf {
        self.folder.join(FAKE_CUPTI_FILE)
    }
}

/// Puts the libraries into the first usable of `$XDG_CACHE_HOME/gputap`, `~/.cache/gputap`, `$XDG_RUNTIME_DIR/gputap`
/// and `/tmp/gputap-UID`, in a folder named by their content, or finds them there.
pub fn install_into_user_folder() -> Result<PayloadDir> {
    install_into_first_of(&folder::candidates())
}

fn install_into_first_of(candidates: &[PathBuf]) -> Result<PayloadDir> {
    let mut refused = Vec::new();
    for base in candidates {
        match install_into(base) {
            Ok(installed) => return Ok(installed),
            Err(error) => refused.push(error),
        }
    }
    Err(Error::NoFolder { refused })
}

fn install_into(base: &Path) -> Result<PayloadDir> {
    folder::make_private(base)?;
    let folder = base.join(content_name());
    folder::make_private(&folder)?;
    folder::make_private(&folder.join("fakes"))?;
    for (name, bytes) in [(SHIM_FILE, SHIM), (FAKE_CUDA_FILE, FAKE_CUDA), (FAKE_CUPTI_FILE, FAKE_CUPTI)] {
        store::put(&folder.join(name), bytes)?;
    }
    Ok(PayloadDir { folder })
}

/// A name for the content; not a proof of it, which is why the bytes are compared as well.
fn content_name() -> String {
    let mut hasher = crc32fast::Hasher::new();
    let mut length_bytes = 0;
    for bytes in [SHIM, FAKE_CUDA, FAKE_CUPTI] {
        hasher.update(bytes);
        length_bytes += bytes.len();
    }
    format!("{}-{:08x}-{length_bytes:x}", env!("CARGO_PKG_VERSION"), hasher.finalize())
}

#[cfg(test)]
mod tests;
