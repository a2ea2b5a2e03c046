//! Start-up, inside the application's `cuInit`: makes the segment, finds CUPTI, starts the timer. Whatever fails is
//! written into the segment as a state with its reason.

use crate::{
    exit,
    library::{self, Cupti, NoCupti},
    settings::Settings,
    timer::{self, Notes, Timer},
};
use gputap_callbacks::{
    fork::ForkWord,
    pool::BufferPool,
    records::RecordApi,
    tapped::{self, Tapped},
    thread,
};
use gputap_ringbuf::{
    backing::create::{self, BackingChoice, Created},
    discover,
    header::{
        identity::Backing,
        status::{Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::Sizes,
    process,
    tap::TapWriter,
};

/// Why the tap is off.
struct Off {
    reason: Reason,
    detail: String,
}

pub fn start() {
    let settings = Settings::from_environment();
    match library::open(settings.cupti.as_deref()) {
        Ok(cupti) => start_with(cupti, &settings),
        Err(error) => say_off(off_without(error), &settings),
    }
    timer::spawn_quiet("gputap-sweep", sweep);
}

/// Takes away objects of processes that died, so that they do not fill /dev/shm. On a thread of its own: it reads what
/// /proc says of other processes, and one that is stuck in the kernel can hold that up for ever.
///
/// With descriptors of its own: it opens and closes thousands, and a job that closes all that it has and opens others
/// meanwhile (a daemon) would find one of those closed by us, under the number that ours had.
fn sweep() {
    // Where this is refused (Linux before 5.9, or a filter) there is only the job's table.
    // SAFETY: no memory is passed; with UNSHARE it concerns this thread alone, which uses no descriptor of the job's.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) };
    discover::sweep();
}

fn off_without(error: NoCupti) -> Off {
    let (reason, detail) = match error {
        NoCupti::NotFound(detail) => (Reason::NoCupti, detail),
        NoCupti::TooOld(detail) => (Reason::CuptiTooOld, detail),
        NoCupti::SymbolMissing(detail) => (Reason::CuptiSymbolMissing, detail),
        NoCupti::Failed(detail) => (Reason::CuptiError, detail),
    };
    Off { reason, detail }
}

/// Leaves a small segment that says why this process is not tapped.
fn say_off(off: Off, settings: &Settings) {
    // A setting that leaves no room for the tap leaves none for the word that says so: a memfd has room. Without even
    // that nothing can be said: the application matters more than our word.
    let said = create::create(Sizes::STATUS_ONLY, settings.backing);
    let Ok(created) = said.or_else(|_| create::create(Sizes::STATUS_ONLY, BackingChoice::Only(Backing::Memfd))) else {
        return;
    };
    let tap = TapWriter::new(&created);
    tap.status().beat(process::monotonic_ns());
    tap.status().set_state(State::Off, off.reason, &off.detail);
    tap.publish();
    std::mem::forget(created.reserver);
}

fn start_with(cupti: Cupti, settings: &Settings) {
    match prepared(&cupti, settings) {
        Ok((tapped, timer)) => {
            tapped.tap.publish();
            if !exit::arrange(settings.exit) || !timer::spawn(timer) {
                exit::ended();
                tapped.tap.status().set_state(State::Off, Reason::NoThread, "");
            }
        }
        Err(off) => say_off(off, settings),
    }
}

/// Everything in place, nothing subscribed yet.
fn prepared(cupti: &Cupti, settings: &Settings) -> Result<(&'static Tapped, Timer), Off> {
    let no_room = |detail: String| Off { reason: Reason::NoRoom, detail };
    let created = create::create(settings.sizes, settings.backing).map_err(|e| no_room(e.to_string()))?;
    let tap = TapWriter::new(&created);
    let Created { reserver, control, .. } = created;
    let said = settings.complaint.clone() + &reserver.held().complaint();
    // Each thread that launches takes a lane, and several may begin at once.
    let lanes = if settings.launches { LANES_FOR_LAUNCHES } else { Ahead::DEFAULT.lanes };
    let mut housekeeper = Housekeeper::new(reserver, Ahead { lanes, ..Ahead::DEFAULT });
    // Lanes and some room for names and the first modules; the timer goes on from there.
    let head_bytes = housekeeper.reserved_bytes();
    for _ in 0..FIRST_STEPS + lanes {
        if let Step::Short(error) = housekeeper.step(&tap) {
            if housekeeper.reserved_bytes() == head_bytes {
                return Err(no_room(error.to_string()));
            }
            break;
        }
    }
    let fork = ForkWord::new().ok_or_else(|| no_room("the kernel has no MADV_WIPEONFORK (before 4.14)".into()))?;
    let pool = BufferPool::new().ok_or_else(|| no_room("no address space for CUPTI's buffers".into()))?;
    pool.prepare(FIRST_BUFFERS);
    let status = tap.status();
    status.set_cupti(cupti.version, &cupti.path);
    status.beat(process::monotonic_ns());
    status.set_state(State::Starting, Reason::None, &said);
    let records = RecordApi::of(cupti.calls.activity.map(|calls| (calls.next_record, calls.dropped_records)));
    let tapped = tapped::install(Tapped::new(tap, records, cupti.layouts, pool, fork, cupti.version));
    // Subscribing belongs here, before the application can load its first module.
    let notes = Notes::of(cupti, settings);
    let timer = Timer::start(tapped, cupti, control, housekeeper, settings, notes, thread::candidates());
    Ok((tapped, timer))
}

/// Beside the lanes: the names, and four steps of cubins.
const FIRST_STEPS: usize = 5;
const LANES_FOR_LAUNCHES: usize = 6;
const FIRST_BUFFERS: usize = 16;
