//! Reads the processes of a recording, as many at a time as there are cores. Processes that share a device are read
//! together, in the order of time, so that what overlaps on it counts once.

use crate::busy::{Busied, Busy};
use crate::clocks::Clocks;
use crate::sum::Sum;
use crate::tally::{Tally, Wanted};
use gputap_recording::{Block, Problem, Process, Recorded, Stream};
use gputap_ringbuf::event::{Event, EventKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Devices of processes that are read together; what others do is in no busy time.
pub const DEVICES_MAX: usize = 64;
/// Processes with devices of theirs.
const USES_MAX: usize = 1 << 14;
/// Enough for disks that are faster than one core.
const THREADS_MAX: usize = 8;

/// Everything of some processes that share devices.
#[derive(Debug)]
pub struct Gathered {
    pub tallies: Vec<(usize, Tally)>,
    pub devices: Vec<(DeviceKey, Busied)>,
    pub problems: Vec<Problem>,
}

/// A device, by its UUID where that is known, or as the only process that is known to use it calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceKey {
    pub uuid: String,
    /// Of the first process that used it.
    pub process: usize,
    pub ordinal: u32,
}

/// The busy times of a group of processes.
pub struct Devices<'a> {
    processes: &'a [Recorded],
    limits: &'a [Option<[u64; 2]>],
    by_ordinal: HashMap<(u16, u32), usize>,
    latest: ((u16, u32), usize),
    all: Vec<(DeviceKey, Busy)>,
}

impl<'a> Devices<'a> {
    fn new(processes: &'a [Recorded], limits: &'a [Option<[u64; 2]>]) -> Devices<'a> {
        let key = DeviceKey { uuid: String::new(), process: usize::MAX, ordinal: u32::MAX };
        // The first takes what has no place of its own.
        let all = vec![(key, Busy::new(None))];
        Devices { processes, limits, by_ordinal: HashMap::new(), latest: ((u16::MAX, u32::MAX), 0), all }
    }

    /// Of the device that process `process` calls `device_id`.
    #[inline]
    pub fn busy(&mut self, process: u16, device_id: u32) -> &mut Busy {
        if self.latest.0 != (process, device_id) {
            self.latest = ((process, device_id), self.find(process, device_id));
        }
        &mut self.all[self.latest.1].1
    }

    fn find(&mut self, process: u16, device_id: u32) -> usize {
        if let Some(&at) = self.by_ordinal.get(&(process, device_id)) {
            return at;
        }
        if self.by_ordinal.len() >= USES_MAX {
            return 0;
        }
        let of = &self.processes[usize::from(process)].process;
        let uuid = uuid_of(of, device_id);
        let shared = self.all.iter().position(|(key, _)| !uuid.is_empty() && key.uuid == uuid);
        let at = shared.unwrap_or_else(|| {
            if self.all.len() > DEVICES_MAX {
                return 0;
            }
            let key = DeviceKey { uuid, process: usize::from(process), ordinal: device_id };
            self.all.push((key, Busy::new(self.limits[usize::from(process)])));
            self.all.len() - 1
        });
        self.by_ordinal.insert((process, device_id), at);
        at
    }
}

/// With the host: the simulated devices of two hosts may have one UUID.
fn uuid_of(process: &Process, ordinal: u32) -> String {
    let device = process.devices.iter().find(|device| device.ordinal == ordinal && !device.uuid.is_empty());
    device.map_or_else(String::new, |device| format!("{} {}", process.boot_id, device.uuid))
}

/// Reads all processes; their sums come together in their order, whichever is done first.
pub fn gather(processes: &[Recorded], clocks: &Clocks, limits: &[Option<[u64; 2]>], wanted: &Wanted) -> Sum {
    let groups = sharing(processes);
    let next = AtomicUsize::new(0);
    let ordered = Mutex::new(Ordered::default());
    let work = || {
        loop {
            // SYNC: pairs with nothing; each number is taken once.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = groups.get(number) else { return };
            let gathered = read(processes, group, limits, wanted);
            ordered.lock().unwrap_or_else(PoisonError::into_inner).take(number, gathered, processes, clocks);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (1..cores.min(groups.len()).min(THREADS_MAX)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    ordered.into_inner().unwrap_or_else(PoisonError::into_inner).sum
}

/// Sums that wait for those before them.
#[derive(Default)]
struct Ordered {
    sum: Sum,
    taken: usize,
    waiting: BTreeMap<usize, Gathered>,
}

impl Ordered {
    fn take(&mut self, number: usize, gathered: Gathered, processes: &[Recorded], clocks: &Clocks) {
        self.waiting.insert(number, gathered);
        while let Some(gathered) = self.waiting.remove(&self.taken) {
            self.sum.add(gathered, processes, clocks);
            self.taken += 1;
        }
    }
}

/// The numbers of processes, those together that use one device.
fn sharing(processes: &[Recorded]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_uuid: HashMap<String, usize> = HashMap::new();
    for (number, one) in processes.iter().enumerate() {
        let uuids: Vec<String> =
            one.process.devices.iter().map(|device| uuid_of(&one.process, device.ordinal)).collect();
        let uuids = || uuids.iter().filter(|uuid| !uuid.is_empty());
        let known = uuids().find_map(|uuid| by_uuid.get(uuid)).copied();
        let group = known.unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(number);
        for uuid in uuids() {
            by_uuid.entry(uuid.clone()).or_insert(group);
        }
    }
    groups
}

/// A process that is being read.
struct Reading {
    number: usize,
    stream: Stream,
    tally: Tally,
    at_end: bool,
}

fn read(processes: &[Recorded], group: &[usize], limits: &[Option<[u64; 2]>], wanted: &Wanted) -> Gathered {
    let mut devices = Devices::new(processes, limits);
    let mut readings: Vec<Reading> = group
        .iter()
        .map(|&number| {
            let wanted = Wanted { limits: limits[number], ..wanted.clone() };
            let mut tally = Tally::new(number as u16, &wanted);
            let stream = open(&processes[number], limits[number], &mut tally);
            Reading { number, stream, tally, at_end: false }
        })
        .collect();
    let mut unknown = Vec::new();
    while let Some(next) = readings.iter_mut().filter(|one| !one.at_end).min_by_key(|one| one.tally.progress_ns) {
        next.block(&mut devices, &mut unknown);
    }
    let mut problems = Vec::new();
    readings.iter().for_each(|one| problems.extend_from_slice(one.stream.problems()));
    let now_ns = readings.iter().map(|one| one.tally.last_ns()).max().unwrap_or(0);
    Gathered {
        tallies: readings.into_iter().map(|one| (one.number, one.tally)).collect(),
        devices: devices.all.into_iter().skip(1).map(|(key, busy)| (key, busy.finish(now_ns))).collect(),
        problems,
    }
}

/// Memory in use at a time depends on all before it: with a time asked for, those events are read by themselves.
fn open(one: &Recorded, limits: Option<[u64; 2]>, tally: &mut Tally) -> Stream {
    let memory = EventKind::Memory.bit();
    let Some([begin_ns, end_ns]) = limits else { return one.stream(tally.kinds()) };
    if tally.kinds() & memory == 0 {
        return one.stream(tally.kinds()).between(begin_ns, end_ns);
    }
    let mut stream = one.stream(memory).between(0, end_ns);
    let mut is_before = true;
    while let Some(block) = stream.next_block() {
        let Block::Events(events) = block else { continue };
        for event in events {
            let Event::Memory(event) = event else { continue };
            if is_before && event.time_ns >= begin_ns {
                is_before = false;
                tally.memory.begin_high_water();
            }
            if event.time_ns < end_ns {
                tally.memory.count(event);
            }
        }
    }
    if is_before {
        tally.memory.begin_high_water();
    }
    one.stream(tally.kinds() & !memory).between(begin_ns, end_ns)
}

impl Reading {
    /// `unknown` is room for events that wait until their names can be asked for.
    fn block(&mut self, devices: &mut Devices, unknown: &mut Vec<Event>) {
        unknown.clear();
        match self.stream.next_block() {
            None => self.at_end = true,
            Some(Block::Status(status)) => self.tally.status = Some(status),
            Some(Block::Module(_)) => {}
            Some(Block::Events(events)) => {
                let known = self.tally.known(events, devices);
                unknown.extend_from_slice(&events[known..]);
            }
        }
        if !unknown.is_empty() {
            self.tally.new_names(unknown, self.stream.names(), devices);
        }
    }
}
