//! The child: loads the libcupti that it was given and answers cubins until its socket closes.
//!
//! Its standard input is the socket, both ways; standard output and error lead nowhere, whatever a library prints.

use super::protocol::{MAX_CUBIN_BYTES, MAX_TEXT_BYTES, ReplyHead};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use rustix::process::{Resource, Rlimit, Signal};
use std::ffi::c_void;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

/// `main` of `gputap __cupti-crc LIBCUPTI`. Returns when the parent closes the socket.
pub fn cupti_crc_child_main(library: &Path) -> ExitCode {
    // The parent's death ends us even while NVIDIA's code hangs, and a crash there leaves no core file behind.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    match serve(&mut UnixStream::from(socket), library) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(socket: &mut UnixStream, library: &Path) -> io::Result<()> {
    let cupti = match Cupti::load(library) {
        Ok(cupti) => cupti,
        Err(reason) => return refuse(socket, &reason),
    };
    socket.write_all(&ReplyHead::Hello { version: cupti.version }.encode())?;
    let mut cubin = Vec::new();
    while let Some(len) = next_request(socket)? {
        if len > MAX_CUBIN_BYTES {
            return refuse(socket, &format!("a cubin of {len} bytes, {MAX_CUBIN_BYTES} at most"));
        }
        cubin.clear();
        socket.take(len).read_to_end(&mut cubin)?;
        let reply = match cupti.cubin_crc(&cubin) {
            Ok(crc) => ReplyHead::Crc(crc),
            Err(code) => ReplyHead::CuptiResult(code),
        };
        socket.write_all(&reply.encode())?;
    }
    Ok(())
}

/// The length of the next cubin, None at the end.
fn next_request(socket: &mut UnixStream) -> io::Result<Option<u64>> {
    let mut len = [0; 8];
    match socket.read_exact(&mut len) {
        Ok(()) => Ok(Some(u64::from_le_bytes(len))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn refuse(socket: &mut UnixStream, reason: &str) -> io::Result<()> {
    let text = &reason.as_bytes()[..reason.len().min(MAX_TEXT_BYTES as usize)];
    socket.write_all(&ReplyHead::Failed { text_bytes: text.len() as u64 }.encode())?;
    socket.write_all(text)
}

/// `CUpti_GetCubinCrcParams` (cupti_pcsampling.h, the same from 11.8 to 13.5).
#[repr(C)]
struct GetCubinCrcParams {
    /// Bytes of this structure up to and including its last field.
    size: usize,
    cubin_size: usize,
    cubin: *const c_void,
    cubin_crc: u64,
}
const _: () = assert!(size_of::<GetCubinCrcParams>() == 32);

type GetVersion = unsafe extern "C" fn(*mut u32) -> u32;
type GetCubinCrc = unsafe extern "C" fn(*mut GetCubinCrcParams) -> u32;

struct Cupti {
    version: u32,
    get_cubin_crc: Symbol<GetCubinCrc>,
}

impl Cupti {
    fn load(path: &Path) -> Result<Cupti, String> {
        // SAFETY: loading runs the library's initialisers, whose soundness nobody can prove. This process exists for
        // nothing else: whatever they do ends with it.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| reason(&e))?;
        // SAFETY: the type is that of cupti_pcsampling.h. A library of another kind that exports the same name can at
        // worst crash this process.
        let get_cubin_crc = unsafe { library.get::<GetCubinCrc>(b"cuptiGetCubinCrc\0") }.map_err(|e| reason(&e))?;
        // SAFETY: likewise, cupti_version.h.
        let get_version = unsafe { library.get::<GetVersion>(b"cuptiGetVersion\0") }.map_err(|e| reason(&e))?;
        let mut version = 0;
        // SAFETY: the one argument is a valid pointer to a u32, written before the call returns.
        let result = unsafe { get_version(&mut version) };
        // Symbols must not outlive the library; it stays until the process ends (unloading CUPTI is known to crash).
        std::mem::forget(library);
        match result {
            0 => Ok(Cupti { version, get_cubin_crc }),
            code => Err(format!("cuptiGetVersion returned {code}")),
        }
    }

    fn cubin_crc(&self, cubin: &[u8]) -> Result<u64, u32> {
        let mut params = GetCubinCrcParams {
            size: size_of::<GetCubinCrcParams>(),
            cubin_size: cubin.len(),
            cubin: cubin.as_ptr().cast(),
            cubin_crc: 0,
        };
        // SAFETY: the structure is CUPTI's own and says its size; the cubin is readable for `cubin_size` bytes and,
        // like the structure, outlives the call, which keeps neither.
        match unsafe { (self.get_cubin_crc)(&mut params) } {
            0 => Ok(params.cubin_crc),
            code => Err(code),
        }
    }
}

fn reason(error: &libloading::Error) -> String {
    // The loader's own words name the file and the missing piece; libloading keeps them in the source.
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}
