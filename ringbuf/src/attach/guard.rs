//! A segment that shrinks while a reader has it mapped is a message, not the reader's death.
//!
//! A touch of a page that its file has lost raises SIGBUS. A process that calls [`catch_sigbus`], once, has a handler
//! that looks whether the address is in a mapping of [`super::MappedFile`]; if so, it puts zeros in the place of the
//! whole mapping and marks it as cut, and the read goes on and finds nothing. Zeros everywhere, not on the one page: a
//! lane that was cut in its middle must not look whole. Records and entries read across the cut fail their checks.
//! Any other SIGBUS goes to whoever had it before.
//!
//! **For reader processes alone.** The tapped process' signal handlers are its own: the shim never calls this.
//!
//! The handler takes no lock, allocates nothing and makes one system call (mmap); it looks through a table of atomics
//! of a fixed size. A slot of the table, by its `turn` (a count of its uses, and a state):
//! ```text
//! FREE ── watch ──► CHANGING ── range stored ──► WATCHED or WRITABLE ── dropped ──► FREE, the next turn
//! ```
//! The thread that faults is inside a mapping that somebody keeps, so the slot of that mapping is steady while the
//! handler looks; a slot that changes meanwhile belongs to another, and its turn tells.

use crate::sync::{AtomicU64, Ordering, fence};
use std::{ffi::c_void, io, ptr::NonNull, sync::OnceLock};

/// Mappings that one process can have at a time: two a tap.
const SLOTS: usize = 1024;
static TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// What the process did on SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
static CATCHING: OnceLock<Result<(), i32>> = OnceLock::new();

const FREE: u64 = 0;
const CHANGING: u64 = 1;
const WATCHED: u64 = 2;
const WRITABLE: u64 = 3;
const STATES: u64 = 4;

struct Slot {
    /// Uses × STATES + state.
    turn: AtomicU64,
    start: AtomicU64,
    len_bytes: AtomicU64,
    cut: AtomicU64,
}

/// Makes a cut segment a matter of [`super::Attached::is_cut`]. Called once by a process that reads taps and may change
/// its own handling of SIGBUS; calling it again changes nothing.
///
/// # Errors
/// The kernel refused the handler.
pub fn catch_sigbus() -> io::Result<()> {
    let install = || {
        // SAFETY: zero is a valid sigaction (the default action); the call below fills it.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        let mut ours = before;
        ours.sa_sigaction = on_sigbus as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `before` may be written. The handler finds it in place when it is first called.
        let failed = unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) } != 0;
        let _ = BEFORE.set(before);
        // SAFETY: the handler is a function of the kind that SA_SIGINFO asks for, and does only what is safe in one.
        if failed || unsafe { libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
        }
        Ok(())
    };
    CATCHING.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

/// A mapping in the table; dropped before it is unmapped.
pub(super) struct Watched {
    slot: &'static Slot,
    turn: u64,
}

impl Watched {
    pub fn is_cut(&self) -> bool {
        self.slot.cut.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SYNC: pairs with the Acquire exchange of the next `watch`, so that its range is stored after ours was used.
        self.slot.turn.store(self.turn + STATES, Ordering::Release);
    }
}

/// Puts a mapping into the table; `None` if that is full.
pub(super) fn watch(start: NonNull<u8>, len_bytes: usize, writable: bool) -> Option<Watched> {
    TABLE.iter().find_map(|slot| slot.take(start.as_ptr() as u64, len_bytes as u64, writable))
}

impl Slot {
    const fn new() -> Slot {
        let [turn, start, len_bytes, cut] = [const { AtomicU64::new(0) }; 4];
        Slot { turn, start, len_bytes, cut }
    }

    fn take(&'static self, start: u64, len_bytes: u64, writable: bool) -> Option<Watched> {
        let free = self.turn.load(Ordering::Relaxed);
        if free % STATES != FREE {
            return None;
        }
        // SYNC: pairs with the Release store of `drop`.
        self.turn.compare_exchange(free, free + CHANGING, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SYNC: pairs with the Acquire fence in `covers`: whoever sees the new range sees that the slot is changing.
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.len_bytes.store(len_bytes, Ordering::Relaxed);
        self.cut.store(0, Ordering::Relaxed);
        // SYNC: pairs with the Acquire load in `covers`.
        self.turn.store(free + if writable { WRITABLE } else { WATCHED }, Ordering::Release);
        Some(Watched { slot: self, turn: free })
    }

    /// The range, and whether it is writable, if `address` is in it.
    fn covers(&self, address: u64) -> Option<(u64, u64, bool)> {
        // SYNC: pairs with the Release store at the end of `take`.
        let turn = self.turn.load(Ordering::Acquire);
        if turn % STATES < WATCHED {
            return None;
        }
        let (start, len_bytes) = (self.start.load(Ordering::Relaxed), self.len_bytes.load(Ordering::Relaxed));
        // SYNC: pairs with the Release fence in `take`.
        fence(Ordering::Acquire);
        let steady = self.turn.load(Ordering::Relaxed) == turn;
        (steady && address.wrapping_sub(start) < len_bytes).then_some((start, len_bytes, turn % STATES == WRITABLE))
    }

    /// Zeros in the place of the mapping; false where the kernel gives none.
    fn cut(&self, start: u64, len_bytes: u64, writable: bool) -> bool {
        // Before the zeros can be read.
        self.cut.store(1, Ordering::Relaxed);
        let access = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range is one mapping of ours, which the thread that faulted in it keeps; it stays mapped, with
        // other contents, which is all that a peer could have done to it.
        let at = unsafe { libc::mmap(start as *mut c_void, len_bytes as usize, access, flags, -1, 0) };
        at != libc::MAP_FAILED
    }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the calling thread's own; what it was doing must find it as it was.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a whole siginfo_t to a handler with SA_SIGINFO.
    let (address, by_kernel) = unsafe { ((*info).si_addr() as u64, (*info).si_code > 0) };
    if !(by_kernel && replace(address)) {
        pass_on(signal, info, context, by_kernel);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn replace(address: u64) -> bool {
    TABLE.iter().any(|slot| {
        slot.covers(address).is_some_and(|(start, len_bytes, writable)| slot.cut(start, len_bytes, writable))
    })
}

/// A SIGBUS that is none of ours: to the handler before, or as if there were none.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void, by_kernel: bool) {
    type WithInfo = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);
    type Plain = extern "C" fn(libc::c_int);
    let (handler, flags) = BEFORE.get().map_or((libc::SIG_DFL, 0), |before| (before.sa_sigaction, before.sa_flags));
    match handler {
        // The kernel ignores only what somebody sent: a fault cannot be gone on from.
        libc::SIG_IGN if !by_kernel => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: zero is a valid sigaction: the default one. The signal is blocked here and comes on return.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &default, std::ptr::null_mut());
                libc::raise(signal);
            }
        }
        // SAFETY: the process installed it as a handler of this kind, and it has not been replaced since but by ours.
        _ if flags & libc::SA_SIGINFO != 0 => unsafe {
            std::mem::transmute::<usize, WithInfo>(handler)(signal, info, context);
        },
        // SAFETY: as above.
        _ => unsafe { std::mem::transmute::<usize, Plain>(handler)(signal) },
    }
}
