//! Words under which something else happens between two accesses: another thread's turn, a signal handler of the same
//! thread, or the thread's end.

use gputap_ringbuf::{
    sync::Ordering,
    words::{MappedWords, ReadWords, Words},
};
use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
};

/// What happens, once, and before which access (the first has number 1).
pub struct Interrupt<'a> {
    pub before: u64,
    pub what: Box<dyn FnOnce() + 'a>,
}

/// Shared by all views of one process.
#[derive(Default)]
pub struct Plan {
    accesses: Cell<u64>,
    interrupt: RefCell<Option<Interrupt<'static>>>,
    end_before: Cell<Option<u64>>,
    ended: Cell<bool>,
    /// Accesses are neither counted nor interrupted.
    paused: Cell<bool>,
}

/// The thread that runs ends here.
struct Ended;

impl Plan {
    /// Runs `body`, interrupted as planned; `None` where the thread ended inside, before access `end_before`.
    pub fn run<T>(
        self: &Rc<Plan>,
        end_before: Option<u64>,
        interrupt: Option<Interrupt<'_>>,
        body: impl FnOnce() -> T,
    ) -> Option<T> {
        self.accesses.set(0);
        self.end_before.set(end_before);
        // SAFETY: only the lifetime changes; what is borrowed outlives this call, at whose end the plan is emptied.
        let interrupt = unsafe { std::mem::transmute::<Option<Interrupt<'_>>, Option<Interrupt<'static>>>(interrupt) };
        self.interrupt.replace(interrupt);
        let result = catch_unwind(AssertUnwindSafe(body));
        drop(self.interrupt.take());
        self.end_before.set(None);
        self.ended.set(false);
        self.paused.set(false);
        match result {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Ended>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Runs `body` as another thread, whose accesses are its own.
    pub fn aside<T>(&self, body: impl FnOnce() -> T) -> T {
        let paused = self.paused.replace(true);
        let value = body();
        self.paused.set(paused);
        value
    }

    /// Whether the access may go on: an ended thread leaves everything as it is, unwinding or not.
    fn before_access(&self) -> bool {
        if self.paused.get() {
            return true;
        }
        if self.ended.get() {
            return false;
        }
        self.accesses.set(self.accesses.get() + 1);
        let is_due = |i: &Option<Interrupt>| i.as_ref().is_some_and(|i| i.before <= self.accesses.get());
        let due = is_due(&self.interrupt.borrow());
        if due && let Some(interrupt) = self.interrupt.take() {
            (interrupt.what)();
        }
        if self.end_before.get().is_some_and(|end| end <= self.accesses.get()) {
            self.ended.set(true);
            resume_unwind(Box::new(Ended));
        }
        true
    }
}

#[derive(Clone)]
pub struct Interrupted {
    words: MappedWords,
    plan: Rc<Plan>,
}

impl Interrupted {
    pub fn new(words: MappedWords, plan: &Rc<Plan>) -> Interrupted {
        Interrupted { words, plan: plan.clone() }
    }
}

impl ReadWords for Interrupted {
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.plan.before_access();
        self.words.load(index, order)
    }
}

impl Words for Interrupted {
    fn store(&self, index: usize, value: u64, order: Ordering) {
        if self.plan.before_access() {
            self.words.store(index, value, order);
        }
    }

    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64 {
        if self.plan.before_access() { self.words.fetch_add(index, value, order) } else { 0 }
    }

    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        if self.plan.before_access() { self.words.compare_exchange(index, expected, new, order) } else { Err(0) }
    }
}
