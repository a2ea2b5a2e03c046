//! An event with its names, in a form in which what CUPTI showed and what a reader got can be compared.

use std::hash::{DefaultHasher, Hash, Hasher};

use gputap_ringbuf::event::{Event, NO_NAME};

/// Names that are longer are compared by their length and hash.
const LONG_BYTES: usize = 1000;
/// Before what stands for a long name.
const LONG: &str = "long: ";
const NOTHING: &str = "-";
const TAB: char = '\t';

/// An event; the names beside it instead of their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub event: Event,
    pub name: Option<String>,
    pub domain: Option<String>,
}

impl Told {
    pub fn new(event: Event, name: Option<&[u8]>, domain: Option<&[u8]>) -> Self {
        Self { event: without_slots(event), name: name.map(brief), domain: domain.map(brief) }
    }

    /// One line, without its end.
    pub fn line(&self) -> String {
        let words = self.event.encode(|words| words.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>());
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| NOTHING.into());
        let (name, domain) = (text(&self.name), text(&self.domain));
        format!("{}{TAB}{}{TAB}{name}{TAB}{domain}", self.event.kind() as u16, words.join(","))
    }

    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(TAB);
        let kind = parts.next()?.parse().ok()?;
        let words: Result<Vec<_>, _> = parts.next()?.split(',').map(|word| u64::from_str_radix(word, 16)).collect();
        let mut text = || parts.next().map(|text| (text != NOTHING).then(|| text.to_owned()));
        let (name, domain) = (text()?, text()?);
        Some(Self { event: Event::decode(kind, &words.ok()?).ok()?, name, domain })
    }

    /// The same at other times: `ahead_ns` earlier. 0, none, stays.
    pub fn earlier(&self, ahead_ns: u64) -> Self {
        let mut event = self.event;
        for time in times_mut(&mut event).into_iter().filter(|time| **time != 0) {
            *time = time.wrapping_sub(ahead_ns);
        }
        Self { event, ..self.clone() }
    }

    /// Start and end, or the one time that it has.
    pub fn times(&self) -> Vec<u64> {
        let mut event = self.event;
        times_mut(&mut event).into_iter().map(|time| *time).collect()
    }

    pub fn has_long_name(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.starts_with(LONG))
    }

    /// 0 for what has none.
    pub fn correlation_id(&self) -> u64 {
        match &self.event {
            Event::Kernel(e) => e.correlation_id,
            Event::Memcpy(e) => e.correlation_id,
            Event::Memset(e) => e.correlation_id,
            Event::Sync(e) => e.correlation_id,
            Event::Graph(e) => e.correlation_id,
            Event::Memory(e) => e.correlation_id,
            Event::Pool(e) => e.correlation_id,
            Event::Runtime(e) | Event::Driver(e) => e.correlation_id,
            Event::Launch(e) => e.correlation_id,
            Event::Overhead(_) | Event::Marker(_) => 0,
        }
    }
}

fn times_mut(event: &mut Event) -> Vec<&mut u64> {
    match event {
        Event::Kernel(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Memcpy(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Memset(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Sync(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Graph(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Overhead(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Runtime(e) | Event::Driver(e) => vec![&mut e.start_ns, &mut e.end_ns],
        Event::Memory(e) => vec![&mut e.time_ns],
        Event::Pool(e) => vec![&mut e.time_ns],
        Event::Marker(e) => vec![&mut e.time_ns],
        Event::Launch(e) => vec![&mut e.time_ns],
    }
}

fn without_slots(mut event: Event) -> Event {
    match &mut event {
        Event::Kernel(e) => e.name_id = NO_NAME,
        Event::Launch(e) => e.name_id = NO_NAME,
        Event::Marker(e) => (e.name_id, e.domain_id) = (NO_NAME, NO_NAME),
        _ => {}
    }
    event
}

fn brief(text: &[u8]) -> String {
    if text.len() <= LONG_BYTES {
        return String::from_utf8_lossy(text).into_owned();
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{LONG}{} bytes, {:x}", text.len(), hasher.finish())
}
