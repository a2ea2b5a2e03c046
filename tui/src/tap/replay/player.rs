//! One recorded process, played: its events go into a model when their time has come.
//!
//! A recording has its events in blocks of one kind, nearly in the order of time; blocks of different kinds that lie
//! beside each other overlap. So it is read ahead of what is played, by more than a recorder holds a block back.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gputap_reader::clock::Now;
use gputap_reader::model::snapshot::{Clock, ClockPoint, Counts, Lost, ModuleCounts, ModuleRow, Snapshot, Target};
use gputap_reader::model::{Model, Timing};
use gputap_reader::symbols::{Cubin, demangle};
use gputap_recording::{Block, Module, Recorded, Status, Stream};
use gputap_ringbuf::event::{ALL_KINDS, Event, EventKind, NO_NAME};

/// Twice as long as a recorder keeps events before it writes them.
const READ_AHEAD_NS: u64 = 2_000_000_000;
/// Events read and not yet played.
const WAITING_MAX: usize = 1 << 20;
/// Events played between two looks at the clock.
const PORTION: usize = 4096;
/// A recorded end is believed no further than this beyond what is known.
const LEAP_MAX_NS: u64 = 60_000_000_000;
const CUBIN_MAX_BYTES: u64 = 256 << 20;
/// Functions named in a module's row.
const ROW_FUNCTIONS: usize = 64;

/// A queue for each number of a kind.
const QUEUES: usize = EventKind::ALL.len() + 1;

pub struct Player {
    recorded: Recorded,
    cubins: PathBuf,
    /// What makes wall time of the recorded times; the same 0 for all where one of them does not say.
    offset_ns: u64,
    began_ns: u64,
    end_ns: u64,
    stream: Stream,
    read_to_ns: u64,
    has_read_all: bool,
    waiting: [VecDeque<Event>; QUEUES],
    waiting_count: usize,
    statuses: VecDeque<Status>,
    modules: VecDeque<Module>,
    played: u64,
    at_ns: u64,
    model: Model,
    status: Status,
}

impl Player {
    /// Looks through the recording for its beginning and end. `offset_ns` makes wall time of its times, wrapping.
    pub fn new(recorded: Recorded, cubins: PathBuf, offset_ns: u64) -> Player {
        let (began_ns, end_ns) = extent(&recorded);
        Player {
            stream: recorded.stream(ALL_KINDS),
            recorded,
            cubins,
            offset_ns,
            began_ns,
            end_ns,
            read_to_ns: 0,
            has_read_all: false,
            waiting: Default::default(),
            waiting_count: 0,
            statuses: VecDeque::new(),
            modules: VecDeque::new(),
            played: 0,
            at_ns: began_ns,
            model: Model::new(Now { monotonic_ns: began_ns, realtime_ns: began_ns.wrapping_add(offset_ns) }),
            status: Status::default(),
        }
    }

    /// From the start again.
    pub fn rewound(self) -> Player {
        let end_ns = self.end_ns;
        Player { end_ns, ..Player::new(self.recorded, self.cubins, self.offset_ns) }
    }

    /// Wall time of the first event, and as far as it is known of the last.
    pub fn extent_ns(&self) -> (u64, u64) {
        (self.began_ns.wrapping_add(self.offset_ns), self.end_ns.wrapping_add(self.offset_ns))
    }

    /// Plays up to `at_ns` of wall time; false where the time was up before.
    pub fn play_to(&mut self, at_ns: u64, until: Instant) -> bool {
        let at_ns = at_ns.wrapping_sub(self.offset_ns);
        loop {
            let is_read = self.read_towards(at_ns.saturating_add(READ_AHEAD_NS), until);
            let is_crowded = self.waiting_count >= WAITING_MAX;
            if (!is_read && !is_crowded) || !self.play_waiting(at_ns, until) {
                return false;
            }
            // Where there is no room for more although all is played that is due, what comes late comes late.
            if is_read || self.waiting_count >= WAITING_MAX {
                self.at_ns = self.at_ns.max(at_ns);
                return true;
            }
        }
    }

    /// True once all up to `to_ns` has been read.
    fn read_towards(&mut self, to_ns: u64, until: Instant) -> bool {
        while !self.has_read_all && self.read_to_ns < to_ns {
            if self.waiting_count >= WAITING_MAX || Instant::now() >= until {
                return false;
            }
            self.read_block();
        }
        true
    }

    fn read_block(&mut self) {
        match self.stream.next_block() {
            None => self.has_read_all = true,
            Some(Block::Status(status)) => self.statuses.push_back(status),
            Some(Block::Module(module)) => self.modules.push_back(module),
            Some(Block::Events(events)) => {
                let Some(kind) = events.first().map(Event::kind) else { return };
                let read = events.len();
                // The earliest of a block: what follows was still open when it was written.
                let first_ns = events.iter().filter_map(good_times).map(|(start_ns, _)| start_ns).min();
                let last_ns = events.iter().filter_map(good_times).map(|(_, end_ns)| end_ns).max();
                self.waiting[kind as usize].extend(events);
                self.waiting_count += read;
                self.read_to_ns = self.read_to_ns.max(first_ns.unwrap_or(0));
                let known_ns = self.end_ns.saturating_add(LEAP_MAX_NS);
                self.end_ns = self.end_ns.max(last_ns.filter(|&last_ns| last_ns <= known_ns).unwrap_or(0));
                self.learn_names(kind as usize, read);
            }
        }
    }

    /// Of the `read` latest events, which the stream knows now.
    fn learn_names(&mut self, queue: usize, read: usize) {
        let (names, queue) = (self.stream.names(), &self.waiting[queue]);
        for event in queue.range(queue.len() - read..) {
            let [id, _] = event.names();
            if matches!(event, Event::Marker(_)) || id == NO_NAME || self.model.knows_name(id) {
                continue;
            }
            if let Some(name) = names.get(id) {
                self.model.name(id, &name.bytes);
            }
        }
    }

    /// True once all that is due by `at_ns` was played.
    fn play_waiting(&mut self, at_ns: u64, until: Instant) -> bool {
        while let Some(status) = pop_if(&mut self.statuses, |status| status.time_ns <= at_ns) {
            self.take_status(status);
        }
        while let Some(module) = pop_if(&mut self.modules, |module| module.first_load_ns <= at_ns) {
            self.model.module(row(&module, &self.cubins));
            if Instant::now() >= until {
                return false;
            }
        }
        let now = self.now(at_ns);
        for queue in &mut self.waiting {
            let mut portion = 0;
            while let Some(event) = pop_if(queue, |event| due_ns(event) <= at_ns) {
                self.model.event(&event, now);
                self.waiting_count -= 1;
                self.played += 1;
                portion += 1;
                if portion % PORTION == 0 && Instant::now() >= until {
                    return false;
                }
            }
        }
        true
    }

    fn take_status(&mut self, status: Status) {
        if total(&status) > total(&self.status) {
            self.model.lost_records(self.now(status.time_ns));
        }
        self.status = status;
    }

    fn now(&self, monotonic_ns: u64) -> Now {
        Now { monotonic_ns, realtime_ns: monotonic_ns.wrapping_add(self.offset_ns) }
    }

    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// When it is played to, as the model counts time.
    pub fn played_to(&self) -> Now {
        self.now(self.at_ns)
    }

    fn is_at_end(&self) -> bool {
        self.has_read_all && self.waiting_count == 0 && self.at_ns >= self.end_ns
    }

    pub fn snapshot(&self) -> Snapshot {
        let now = self.played_to();
        let model = self.model.snapshot(now);
        let loads = model.modules.iter().fold(0u64, |sum, row| sum.saturating_add(row.loads));
        let stored = model.modules.len() as u64;
        let clock = self.recorded.process.clock.unwrap_or_default();
        let point =
            ClockPoint { monotonic_ns: clock.monotonic_ns, realtime_ns: clock.realtime_ns, error_ns: clock.error_ns };
        Snapshot {
            target: self.target(),
            elapsed_ns: self.at_ns.saturating_sub(self.began_ns),
            counts: self.counts(&model.counts),
            module_counts: ModuleCounts {
                attempted: loads,
                stored,
                duplicates: loads.saturating_sub(stored),
                ..model.module_counts
            },
            clock: Clock {
                source: if self.recorded.process.clock_source == "monotonic" { "monotonic" } else { "wall" },
                point: self.recorded.process.clock.map(|_| point),
                ..Clock::default()
            },
            notes: self.notes(),
            ..model
        }
    }

    fn target(&self) -> Target {
        let process = &self.recorded.process;
        Target {
            pid: process.pid_outside.unwrap_or(process.pid),
            command: process.command.join(" "),
            alive: !self.is_at_end(),
            state: if self.status.state.is_empty() { "recording".to_owned() } else { self.status.state.clone() },
            cupti_version: process.cupti_version,
            driver_version: match process.driver_version {
                0 => String::new(),
                version => format!("{}.{}", version / 1000, version % 1000 / 10),
            },
            uptime_ns: self.at_ns.saturating_sub(self.began_ns),
            ..Target::default()
        }
    }

    /// The books as of the last status; what the model counted as odd as it goes.
    fn counts(&self, model: &Counts) -> Counts {
        let lost = |loss: &gputap_recording::Loss| Lost {
            reason: loss.reason.clone(),
            count: loss.count,
            unknown: loss.unknown,
        };
        let status = &self.status;
        let (attempted, delivered) = match status.attempted {
            0 => (self.played, self.played),
            attempted => (attempted, status.delivered),
        };
        Counts {
            attempted,
            delivered,
            pending: status.pending,
            lost: status.lost.iter().map(lost).collect(),
            ..model.clone()
        }
    }

    fn notes(&self) -> Vec<String> {
        let problems = self.stream.problems().iter().map(ToString::to_string);
        self.status.notes.iter().cloned().chain(problems).collect()
    }
}

fn pop_if<T>(queue: &mut VecDeque<T>, is_due: impl Fn(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(is_due) { queue.pop_front() } else { None }
}

fn total(status: &Status) -> u64 {
    status.lost.iter().fold(0, |sum, lost| sum.saturating_add(lost.count))
}

/// The first event, or else the beginning of the recording, and the last status.
fn extent(recorded: &Recorded) -> (u64, u64) {
    let mut end_ns = 0;
    let mut statuses = recorded.stream(0);
    while let Some(block) = statuses.next_block() {
        if let Block::Status(status) = block {
            end_ns = end_ns.max(status.time_ns);
        }
    }
    let mut stream = recorded.stream(ALL_KINDS);
    let mut first_ns = None;
    while let Some(block) = stream.next_block() {
        if let Block::Events(events) = block {
            first_ns = events.iter().filter_map(good_times).map(|(start_ns, _)| start_ns).min();
            if first_ns.is_some() {
                break;
            }
        }
    }
    let began_ns = first_ns.or(recorded.process.clock.map(|clock| clock.monotonic_ns)).unwrap_or(0);
    (began_ns, end_ns.max(began_ns))
}

/// Start and end, where both can be believed.
fn good_times(event: &Event) -> Option<(u64, u64)> {
    match Timing::of(event) {
        Timing::Good { start_ns, end_ns } => Some((start_ns, end_ns)),
        Timing::Flagged(_) => None,
    }
}

/// When it is known: at its end. What has no time that can be right is known at once.
fn due_ns(event: &Event) -> u64 {
    good_times(event).map_or(0, |(_, end_ns)| end_ns)
}

fn row(module: &Module, cubins: &Path) -> ModuleRow {
    let row = ModuleRow {
        slot: module.slot,
        size_bytes: module.size_bytes,
        loads: module.loads,
        first_load_ns: module.first_load_ns,
        crc32: Some(module.crc32),
        cupti_crc: module.cupti_crc,
        cupti_crc_reason: if module.cupti_crc.is_some() { String::new() } else { "not in the recording".to_owned() },
        ..ModuleRow::default()
    };
    let Some(name) = &module.file else {
        return ModuleRow { parse_error: "its bytes are not in the recording".to_owned(), ..row };
    };
    match parsed(cubins, name) {
        Ok(cubin) => ModuleRow {
            functions: cubin.functions.iter().take(ROW_FUNCTIONS).map(|name| demangle(name)).collect(),
            function_count: cubin.function_count,
            architecture: cubin.architecture,
            line_info: Some(cubin.line_info),
            ..row
        },
        Err(parse_error) => ModuleRow { parse_error, ..row },
    }
}

/// A file of a recording is no more trusted than its name: that leads nowhere else.
fn parsed(cubins: &Path, name: &str) -> Result<Cubin, String> {
    let file = Path::new(name).file_name().ok_or("its file has no name")?;
    let path = cubins.join(file);
    let size = fs::metadata(&path).map_err(|error| format!("its file: {error}"))?.len();
    if size > CUBIN_MAX_BYTES {
        return Err(format!("its file is {size} bytes long"));
    }
    let bytes = fs::read(&path).map_err(|error| format!("its file: {error}"))?;
    Cubin::parse(&bytes).map_err(|error| error.to_string())
}
