//! Under the limits that jobs run under: a memory cgroup, /dev/shm small, full, absent or read-only. The tap makes do or
//! says why not; the job and its neighbours notice nothing.
#![cfg(not(loom))]

mod child;

use child::{Child, backing, can_unshare, say, skip};
use gputap_ringbuf::{
    attach::Attached,
    backing::{
        create::{Created, create},
        reserve::{ReserveError, Reserver},
        room,
    },
    discover,
    header::{
        counters::Counter,
        identity::Backing,
        status::{Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::Sizes,
    store::EntryKind,
    tap::{ModuleLoad, TapWriter},
};
use std::{
    ffi::CString,
    fs,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

const MIB: u64 = 1 << 20;

/// What this test binary does when it is a child.
#[test]
fn child() {
    let role = child::role();
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words[..] {
        [] => {}
        ["cgroup", name, group] => in_a_cgroup(name, Path::new(group)),
        ["shm", setup, name] => in_dev_shm(setup, name),
        ["brim"] => to_the_brim(),
        ["enospc"] => populating_fails(),
        ["locked", when, name] => in_a_job_that_locks_its_memory(when, name),
        ["fsize", name, limit] => under_a_file_size_limit(name, limit.parse().unwrap()),
        _ => panic!("{role:?}"),
    }
}

/// A tap of default sizes, as the shim makes one.
fn tap(created: Created) -> (TapWriter, Housekeeper) {
    let tap = TapWriter::new(&created);
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead::DEFAULT);
    while let Step::Reserved = housekeeper.step(&tap) {}
    tap.status().set_state(State::Idle, Reason::None, "");
    tap.publish();
    (tap, housekeeper)
}

/// A cubin that is no other's, of `len` bytes.
fn load(tap: &TapWriter, number: u32, len: usize) {
    let mut image = vec![1; len];
    image[..4].copy_from_slice(&number.to_ne_bytes());
    // SAFETY: `image` can be read and does not change.
    unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad { module_id: number, ..Default::default() }) };
}

/// How many loads were kept, and how many were refused, by the counts and by the sizes that the store remembers; they
/// have to be all.
fn kept_and_refused(tap: &TapWriter) -> (u64, u64) {
    let attached = tap.as_reader().unwrap();
    let mut store = attached.cubins();
    let (mut kept, mut refused_sizes) = (0, 0);
    while let Some(entry) = store.next_entry() {
        if entry.kind == EntryKind::RefusedCubin as u16 {
            refused_sizes += entry.uses;
            continue;
        }
        let bytes = store.read(&entry).unwrap();
        assert!(bytes[..4] == (entry.a as u32).to_ne_bytes() && bytes[4..].iter().all(|&b| b == 1));
        kept += 1;
    }
    let counters = attached.counters();
    let refused = counters.get(Counter::ModulesNotReserved) + counters.get(Counter::ModulesFull);
    assert_eq!((counters.get(Counter::ModuleLoads), refused_sizes), (kept + refused, refused));
    (kept, refused)
}

/// Goes round every lane that there is, several times, and reads what is left.
fn write_all_lanes(tap: &TapWriter) {
    let lanes = (0..64).take_while(|&n| tap.enter_lane(1000 + n, 1 + n).is_ok()).count() as u64;
    assert!(lanes > 0);
    let records = 3 * Sizes::DEFAULT.lane_words as u64 / 101;
    for n in 0..lanes {
        (0..records).for_each(|seq| tap.enter_lane(1000 + n, 1 + n).unwrap().write(1, &[seq + 1; 100]).unwrap());
    }
    let attached = tap.as_reader().unwrap();
    let mut delivered = 0;
    for lane in 0..attached.lane_count() {
        let done = attached.lane(lane).drain(u64::MAX, |record| assert_eq!(record.words, [record.seq + 1; 100]));
        assert_eq!(done.unreadable, 0);
        delivered += done.delivered;
    }
    assert!(delivered > lanes * records / 4);
}

/// A memory cgroup, removed when it goes out of scope.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Of the first version or the second, whichever this machine lets us make.
fn memory_group(limit_bytes: u64) -> Option<Group> {
    let name = format!("gputap-test-{}-{:?}", std::process::id(), std::thread::current().id());
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let mut why = String::new();
    for (root, limit) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")] {
        let group = Group(Path::new(root).join(&name));
        let made = fs::create_dir(&group.0).and_then(|()| fs::write(group.0.join(limit), limit_bytes.to_string()));
        match made {
            Ok(()) => {
                // Without swap, so that the limit is what it says; absent where the machine has none.
                let _ = fs::write(group.0.join("memory.swap.max"), "0");
                return Some(group);
            }
            Err(error) => why += &format!("{root}: {error}; "),
        }
    }
    skip("the memory cgroup", why);
    None
}

const GROUP_BYTES: u64 = 256 * MIB;
const LOADS: u32 = 150;
const LOAD_BYTES: usize = 4 << 20;

fn in_a_cgroup(name: &str, group: &Path) {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let headroom_bytes = room::cgroup_headroom_bytes();
    assert!(headroom_bytes < GROUP_BYTES, "{headroom_bytes} bytes: the group is not seen");
    let (tap, mut housekeeper) = tap(create(Sizes::DEFAULT, backing(name)).unwrap());
    let mut last = Step::Enough;
    for number in 0..LOADS {
        load(&tap, number, LOAD_BYTES);
        loop {
            last = housekeeper.step(&tap);
            if !matches!(last, Step::Reserved) {
                break;
            }
        }
    }
    assert!(matches!(last, Step::Short(ReserveError::Cgroup { .. })), "{last:?}");
    write_all_lanes(&tap);
    let (kept, refused) = kept_and_refused(&tap);
    let attached = tap.as_reader().unwrap();
    let nonce = format!("{:016x}", attached.identity().nonce);
    let found = discover::discover().into_iter().find(|f| f.segment.to_string_lossy().contains(&nonce));
    if let Some(found) = found {
        let _ = fs::remove_file(&found.segment);
        let _ = fs::remove_file(&found.control);
    }
    say(format_args!("{kept} kept {refused} refused {} reserved of {headroom_bytes}", housekeeper.reserved_bytes()));
}

#[test]
fn in_a_memory_cgroup_the_tap_takes_what_is_left_and_nobody_is_killed() {
    for name in ["memfd", "shm"] {
        let Some(group) = memory_group(GROUP_BYTES) else { return };
        let mut child = Child::start(&format!("cgroup {name} {}", group.0.display()));
        let said = child.line();
        let status = child.wait();
        assert!(status.success(), "{name}: {status}");
        let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [kept, refused, reserved_bytes, headroom_bytes] = numbers[..] else { panic!("{said}") };
        assert!(kept > 10 && refused > 10 && kept + refused == LOADS.into(), "{name}: {said}");
        assert!(reserved_bytes <= headroom_bytes && reserved_bytes > headroom_bytes / 2, "{name}: {said}");
        let killed = ["memory.oom_control", "memory.events"]
            .into_iter()
            .find_map(|file| fs::read_to_string(group.0.join(file)).ok())
            .and_then(|text| text.lines().find_map(|l| l.strip_prefix("oom_kill ")?.parse::<u64>().ok()));
        assert_eq!(killed, Some(0), "{name}");
    }
}

fn mount(kind: Option<&str>, at: &str, flags: libc::c_ulong, options: &str) {
    let text = |s: &str| CString::new(s).unwrap();
    let (kind, at, options) = (kind.map(text), text(at), text(options));
    let kind = kind.as_ref().map_or(std::ptr::null(), |k| k.as_ptr());
    // SAFETY: all are NUL-terminated, and the kind may be null where the flags ask for none.
    let failed = unsafe { libc::mount(kind, at.as_ptr(), kind, flags, options.as_ptr().cast()) } != 0;
    assert!(!failed, "{at:?}: {}", std::io::Error::last_os_error());
}

/// A file that takes all that is free in /dev/shm.
fn fill_dev_shm() -> fs::File {
    let file = fs::File::create("/dev/shm/others").unwrap();
    let mut len_bytes = 0;
    for step_bytes in [8 * MIB, 65536, 4096] {
        // SAFETY: no memory is passed.
        while unsafe { libc::fallocate(file.as_raw_fd(), 0, len_bytes, step_bytes as libc::off_t) } == 0 {
            len_bytes += step_bytes as libc::off_t;
        }
    }
    assert_eq!(room::free_bytes("/dev/shm"), Some(0));
    file
}

/// In mounts of this process alone.
fn in_dev_shm(setup: &str, name: &str) {
    match setup {
        "full" => {
            mount(Some("tmpfs"), "/dev/shm", 0, "size=64m");
            fill_dev_shm();
        }
        "absent" => mount(Some("tmpfs"), "/dev", 0, "size=1m"),
        "read-only" => {
            mount(Some("tmpfs"), "/dev/shm", 0, "size=2g");
            mount(None, "/dev/shm", libc::MS_REMOUNT | libc::MS_RDONLY, "");
        }
        size => mount(Some("tmpfs"), "/dev/shm", 0, &format!("size={size}")),
    }
    let free_bytes = room::free_bytes("/dev/shm").unwrap_or(0);
    let created = match create(Sizes::DEFAULT, backing(name)) {
        Ok(created) => created,
        Err(error) => {
            let left =
                fs::read_dir("/dev/shm").map_or(0, |d| d.flatten().filter(|e| e.file_name() != "others").count());
            assert_eq!(left, 0, "what could not be made is taken away again");
            return say(format_args!("refused: {error}"));
        }
    };
    let (tap, mut housekeeper) = tap(created);
    for number in 0..LOADS {
        load(&tap, number, 1 << 20);
        while let Step::Reserved = housekeeper.step(&tap) {}
    }
    write_all_lanes(&tap);
    let (kept, refused) = kept_and_refused(&tap);
    let left_bytes = room::free_bytes("/dev/shm").unwrap_or(0);
    assert!(left_bytes >= free_bytes / 2, "{left_bytes} of {free_bytes} bytes are left to others");
    let found = discover::find(std::process::id()).unwrap();
    let backing = Attached::open(&found).unwrap().identity().backing;
    say(format_args!("{} kept {kept} refused {refused}", backing.name()));
}

fn outcome(setup: &str, name: &str) -> String {
    let mut child = Child::start_under(&["unshare", "--mount"], &format!("shm {setup} {name}"));
    let said = child.line();
    assert!(child.wait().success(), "{setup}, {name}: {said}");
    said
}

const SETUPS: [&str; 5] = ["full", "64m", "1m", "absent", "read-only"];

#[test]
fn auto_works_whatever_dev_shm_is_and_leaves_half_of_it() {
    if !can_unshare("/dev/shm of other kinds", &["--mount"]) {
        return;
    }
    for setup in SETUPS {
        assert_eq!(outcome(setup, "auto"), format!("memfd kept {LOADS} refused 0"), "{setup}");
    }
    assert_eq!(outcome("2g", "auto"), format!("shm kept {LOADS} refused 0"));
}

#[test]
fn a_named_segment_that_cannot_be_had_is_refused_in_words() {
    if !can_unshare("/dev/shm of other kinds", &["--mount"]) {
        return;
    }
    for (setup, words) in [
        ("full", "/dev/shm has 0 bytes left"),
        ("1m", "half of what /dev/shm had free"),
        ("absent", "/dev/shm is missing or cannot be written, and GPUTAP_BACKING asks for it"),
        ("read-only", "/dev/shm is missing or cannot be written, and GPUTAP_BACKING asks for it"),
    ] {
        let said = outcome(setup, "shm");
        assert!(said.starts_with("refused: ") && said.contains(words), "{setup}: {said}");
    }
    // In Docker's 64 MB it keeps what half of them can hold, and counts the rest.
    let said = outcome("64m", "shm");
    let numbers: Vec<u32> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(said.starts_with("shm kept ") && numbers[0] > 0 && numbers[0] + numbers[1] == LOADS, "{said}");
}

/// Somebody fills /dev/shm after we have reserved: what is reserved can be written, the rest is refused.
fn to_the_brim() {
    mount(Some("tmpfs"), "/dev/shm", 0, "size=1100m");
    let (tap, mut housekeeper) = tap(create(Sizes::DEFAULT, backing("auto")).unwrap());
    assert_eq!(tap.as_reader().unwrap().identity().backing, Backing::Shm);
    let others = fill_dev_shm();
    write_all_lanes(&tap);
    (0..LOADS).for_each(|number| load(&tap, number, 1 << 20));
    (0..20_000u32).for_each(|n| _ = tap.store_kernel_name(format!("kernel-{n}-{}", "x".repeat(100)).as_bytes(), 0));
    let (kept, refused) = kept_and_refused(&tap);
    let short = housekeeper.step(&tap);
    assert!(matches!(short, Step::Short(ReserveError::ShmFull { .. })), "{short:?}");
    assert_eq!(room::free_bytes("/dev/shm"), Some(0), "nothing was taken from under the others");
    say(format_args!("{kept} kept {refused} refused"));
    child::stay();
    drop(others);
}

#[test]
fn what_is_reserved_can_be_written_and_read_when_others_fill_dev_shm() {
    if !can_unshare("/dev/shm to the brim", &["--mount"]) {
        return;
    }
    let mut child = Child::start_under(&["unshare", "--mount"], "brim");
    let said = child.line();
    assert_eq!(said, format!("64 kept {} refused", LOADS - 64));
    // Through /proc/PID/root: its mounts are its own. A reader meets no page that is not there.
    let found = discover::find(child.pid()).unwrap();
    let attached = Attached::open(&found).unwrap();
    let mut cubins = attached.cubins();
    let mut entries: Vec<_> = std::iter::from_fn(|| cubins.next_entry()).collect();
    entries.retain(|entry| entry.kind == EntryKind::Cubin as u16);
    assert!(entries.len() == 64 && entries.iter().all(|entry| cubins.read(entry).unwrap().len() == 1 << 20));
    let mut names = attached.definitions();
    assert!(std::iter::from_fn(|| names.next_entry()).count() > 1000);
    let delivered: u64 = (0..attached.lane_count()).map(|l| attached.lane(l).drain(u64::MAX, |_| {}).delivered).sum();
    assert!(delivered > 1000);
    child.kill();
}

/// Others may take the room between our look at it and our use of it: what populating came to is given back.
fn populating_fails() {
    mount(Some("tmpfs"), "/dev/shm", 0, "size=64m");
    let created = create(Sizes::DEFAULT, backing("shm")).unwrap();
    let free_bytes = room::free_bytes("/dev/shm").unwrap();
    let start_bytes = created.layout.cubins as u64 * 8;
    let mut careless = Reserver::new(created.words.clone(), None, false, u64::MAX);
    let error = careless.reserve(start_bytes, 128 * MIB).unwrap_err().to_string();
    assert_eq!(room::free_bytes("/dev/shm"), Some(free_bytes));
    say(error);
}

#[test]
fn room_that_could_not_be_had_whole_is_given_back() {
    if !can_unshare("populating without room", &["--mount"]) {
        return;
    }
    let mut child = Child::start_under(&["unshare", "--mount"], "enospc");
    let said = child.line();
    assert!(said.contains("No space left on device"), "{said}");
    assert!(child.wait().success());
}

/// Fills all that the limit leaves; growing a file past it would be SIGXFSZ.
fn under_a_file_size_limit(name: &str, limit_bytes: u64) {
    let limit = libc::rlimit { rlim_cur: limit_bytes, rlim_max: limit_bytes };
    // SAFETY: `limit` is a whole rlimit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
    let created = match create(Sizes::DEFAULT, backing(name)) {
        Ok(created) => created,
        Err(error) => return say(format_args!("refused: {error}")),
    };
    assert!(created.layout.total_words as u64 * 8 <= limit_bytes);
    let (tap, mut housekeeper) = tap(created);
    for number in 0..LOADS {
        load(&tap, number, 1 << 20);
        while let Step::Reserved = housekeeper.step(&tap) {}
    }
    let (kept, refused) = kept_and_refused(&tap);
    let found = discover::find(std::process::id()).unwrap();
    let _ = fs::remove_file(&found.segment);
    let _ = fs::remove_file(&found.control);
    say(format_args!("kept {kept} refused {refused}"));
}

#[test]
fn under_a_file_size_limit_the_cubins_get_less_or_the_tap_says_why_not() {
    for name in ["memfd", "shm"] {
        for (limit_bytes, words) in [
            (4096, "refused: RLIMIT_FSIZE allows files of 4096 bytes"),
            (64 * MIB, "refused: RLIMIT_FSIZE allows files of 67108864 bytes"),
            (650 * MIB, "kept "),
            (4096 * MIB, "kept 150 refused 0"),
        ] {
            let mut child = Child::start(&format!("fsize {name} {limit_bytes}"));
            let said = child.line();
            assert!(said.starts_with(words), "{name}, {limit_bytes}: {said}");
            let status = child.wait();
            assert!(status.success(), "{name}, {limit_bytes}: {status}");
            assert!(limit_bytes != 650 * MIB || !said.ends_with(" 0"), "{said}");
        }
    }
}

fn in_a_job_that_locks_its_memory(when: &str, name: &str) {
    // SAFETY: no memory is passed.
    let locks = || unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0;
    let can_lock = when == "after" || locks();
    let (tap, mut housekeeper) = tap(create(Sizes::DEFAULT, backing(name)).unwrap());
    if !can_lock || (when == "after" && !locks()) {
        return say(format_args!("skip: mlockall: {}", std::io::Error::last_os_error()));
    }
    // What is reserved under the lock can be written as well.
    (0..20).for_each(|number| load(&tap, number, 1 << 20));
    while let Step::Reserved = housekeeper.step(&tap) {}
    let found = discover::find(std::process::id()).unwrap();
    let allocated_bytes = fs::metadata(&found.segment).unwrap().blocks() * 512;
    let _ = fs::remove_file(&found.segment);
    let _ = fs::remove_file(&found.control);
    say(format_args!("allocated {allocated_bytes} reserved {}", housekeeper.reserved_bytes()));
}

/// Locked memory is filled in when it is mapped, or when it is locked: 1.6 GB of it.
#[test]
fn a_job_that_locks_its_memory_pays_for_what_is_reserved_and_no_more() {
    for (when, name) in [("before", "memfd"), ("before", "shm"), ("after", "memfd"), ("after", "shm")] {
        let said = Child::start(&format!("locked {when} {name}")).line();
        if let Some(why) = said.strip_prefix("skip: ") {
            skip("a job that locks its memory", why);
            continue;
        }
        let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert_eq!(numbers[0], numbers[1], "{when} {name}: {said}");
    }
}
