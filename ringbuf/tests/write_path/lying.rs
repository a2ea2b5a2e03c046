//! Words that count every access, and that may lie: a load gives anything, an exchange fails or seems to succeed, and
//! what was stored is gone.

use gputap_ringbuf::{
    layout::CHUNK_WORDS,
    sync::Ordering,
    words::{MappedWords, ReadWords, Words},
};
use std::{cell::Cell, rc::Rc};

/// What an exchange gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    Honest,
    Fails,
    Succeeds,
}

/// How the words lie.
#[derive(Clone, Copy, Debug)]
pub struct Lies {
    pub seed: u64,
    /// Of 100 loads and additions.
    pub percent: u64,
    pub exchange: Exchange,
}

/// Shared by all views of one tap.
pub struct Account {
    accesses: Cell<u64>,
    limit: Cell<u64>,
    lies: Cell<Lies>,
    random: Cell<u64>,
}

impl Account {
    /// Of words that do not lie yet.
    pub fn new() -> Rc<Account> {
        let (accesses, limit) = (Cell::new(0), Cell::new(u64::MAX));
        let lies = Cell::new(Lies { seed: 0, percent: 0, exchange: Exchange::Honest });
        Rc::new(Account { accesses, limit, lies, random: Cell::new(1) })
    }

    pub fn lie(&self, lies: Lies) {
        self.random.set(lies.seed | 1);
        self.lies.set(lies);
    }

    /// Runs `body`, which fails with its `limit`th access and one more; gives how many it made.
    pub fn within(&self, limit: u64, body: impl FnOnce()) -> u64 {
        self.accesses.set(0);
        self.limit.set(limit);
        body();
        self.limit.set(u64::MAX);
        self.accesses.get()
    }

    fn access(&self) {
        self.accesses.set(self.accesses.get() + 1);
        // Once is enough: on the way out, destructors give up what was entered.
        let allowed = self.accesses.get() <= self.limit.get() || std::thread::panicking();
        assert!(allowed, "more than {} accesses", self.limit.get());
    }

    fn next(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// `honest`, or something that means something to the protocols, or anything.
    fn told(&self, honest: u64) -> u64 {
        if self.next() % 100 >= self.lies.get().percent {
            return honest;
        }
        let any = self.next();
        match self.next() % 12 {
            0 => 0,
            1 => 1,
            2 => 2,
            3 => u64::MAX,
            4 => u64::MAX - any % (4 * CHUNK_WORDS as u64),
            5 => honest.wrapping_add(any % 5).wrapping_sub(2),
            6 => any % 100,
            7 => any % (1 << 20),
            8 => any / CHUNK_WORDS as u64 * CHUNK_WORDS as u64,
            9 => 1 << (any % 64),
            10 => any % 3 + 1000,
            _ => any,
        }
    }
}

#[derive(Clone)]
pub struct Lying {
    words: MappedWords,
    account: Rc<Account>,
}

impl Lying {
    pub fn new(words: MappedWords, account: &Rc<Account>) -> Lying {
        Lying { words, account: account.clone() }
    }
}

impl ReadWords for Lying {
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.account.access();
        self.account.told(self.words.load(index, order))
    }
}

impl Words for Lying {
    fn store(&self, index: usize, value: u64, order: Ordering) {
        self.account.access();
        self.words.store(index, value, order);
    }

    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64 {
        self.account.access();
        self.account.told(self.words.fetch_add(index, value, order))
    }

    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.account.access();
        match self.account.lies.get().exchange {
            Exchange::Honest => self.words.compare_exchange(index, expected, new, order),
            Exchange::Fails => Err(self.account.told(expected)),
            Exchange::Succeeds => Ok(expected),
        }
    }
}
