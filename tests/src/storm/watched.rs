//! The words of a segment, seen through something that knows each access by the line of the protocol that makes it:
//! the places to strike are here, and production has none compiled in.

use std::{cell::Cell, panic::Location};

use gputap_ringbuf::{
    sync::Ordering,
    words::{MappedWords, ReadWords, Words, xor},
};

use super::{
    plan::{Number, Plan},
    points::{Part, Points, Side},
    sabotage::Sabotage,
    strike,
};

/// What the accesses of a process are watched with; there is one a process.
pub struct Watch {
    pub plan: Plan,
    pub points: Points,
    pub sabotage: Option<Sabotage>,
}

#[derive(Clone)]
pub struct WatchedWords {
    words: MappedWords,
    watch: &'static Watch,
}

thread_local! {
    /// Set while this thread mends a lane that another left inside a write. No destructor, so no registration.
    static MENDING: Cell<bool> = const { Cell::new(false) };
    /// What is to happen before this thread's next exchange of a lane's `busy`: no two threads do it of themselves.
    static BEFORE_TAKING: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Lets `then` happen once, in the middle of this thread's next claim of a lane, if `claim` makes one.
pub fn in_the_middle_of_a_claim(then: fn(), claim: impl FnOnce()) {
    BEFORE_TAKING.set(Some(then));
    claim();
    BEFORE_TAKING.set(None);
}

impl Watch {
    /// The watch of this process, for as long as it lives.
    pub fn of_this_process(plan: &Plan) -> &'static Watch {
        let sabotage = Sabotage::from_number(plan.number(Number::Sabotage));
        Box::leak(Box::new(Watch { plan: plan.clone(), points: Points::of_the_sources(), sabotage }))
    }
}

impl WatchedWords {
    pub fn new(words: MappedWords, watch: &'static Watch) -> Self {
        WatchedWords { words, watch }
    }

    /// `None`, counted, for an access that is no place that we know.
    fn place(&self, here: &Location<'_>, part: Part) -> Option<usize> {
        let place = self.watch.points.find(here, part);
        if place.is_none() {
            self.watch.plan.add(Number::Strangers);
        }
        place
    }

    fn reached(&self, place: Option<usize>, side: Side) {
        if let Some(point) = place {
            self.watch.plan.hit(point, side);
            if let Some(arm) = self.watch.plan.claim(point, side, strike::may_end()) {
                strike::act(&self.watch.plan, arm);
            }
        }
    }

    fn word(&self, here: &Location<'_>) -> Option<usize> {
        self.place(here, if MENDING.get() { Part::Mending } else { Part::Word })
    }

    fn copy_word(&self, place: Option<usize>, index: usize, word: u64) {
        self.reached(place, Side::Before);
        self.words.store(index, word, Ordering::Relaxed);
        self.reached(place, Side::After);
    }
}

impl ReadWords for WatchedWords {
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words.load(index, order)
    }

    fn load_all(&self, start: usize, to: &mut [u64]) {
        self.words.load_all(start, to);
    }
}

/// Directory words hold thread ids, above 1; see `gputap_ringbuf::lane::directory`.
const IDLE: u64 = 0;
const FREE: u64 = 1;
const FREEING: u64 = u64::MAX;

impl Words for WatchedWords {
    #[track_caller]
    fn store(&self, index: usize, value: u64, order: Ordering) {
        let here = Location::caller();
        let place = self.word(here);
        self.reached(place, Side::Before);
        let instead = || self.watch.sabotage?.instead(&self.watch.points.all[place?], index, value);
        match instead() {
            Some(stores) => stores.into_iter().flatten().for_each(|(at, value)| self.words.store(at, value, order)),
            None => self.words.store(index, value, order),
        }
        if here.file().ends_with("lane/directory.rs") {
            MENDING.set(false);
        }
        self.reached(place, Side::After);
    }

    #[track_caller]
    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64 {
        let place = self.word(Location::caller());
        self.reached(place, Side::Before);
        let found = self.words.fetch_add(index, value, order);
        self.reached(place, Side::After);
        found
    }

    #[track_caller]
    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        let here = Location::caller();
        let takes_over = here.file().ends_with("lane/directory.rs") && expected > FREE && new != IDLE;
        let place = self.place(here, if takes_over { Part::TakeOver } else { Part::Word });
        if here.file().ends_with("lane/directory.rs")
            && let Some(then) = BEFORE_TAKING.take()
        {
            then();
        }
        self.reached(place, Side::Before);
        let done = self.words.compare_exchange(index, expected, new, order);
        if done.is_ok() {
            if takes_over {
                MENDING.set(true);
                strike::mends(&self.watch.plan, new == FREEING);
            }
            self.reached(place, Side::After);
        }
        done
    }

    #[track_caller]
    fn store_headed(&self, start: usize, from: &[u64], head: impl Fn(u64) -> u64) {
        let here = Location::caller();
        let part = |i: usize| match i {
            0 => Some(Part::FirstWord),
            _ if i + 1 == from.len() => Some(Part::LastWord),
            _ if i == from.len() / 2 => Some(Part::MiddleWord),
            _ => None,
        };
        for (i, word) in from.iter().enumerate() {
            let place = part(i).and_then(|part| self.place(here, part));
            self.copy_word(place, start + 1 + i, *word);
        }
        self.copy_word(self.place(here, Part::Head), start, head(xor(from)));
    }
}
