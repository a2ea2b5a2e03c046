//! The end of a round: the writer is dead, the readers close their books, and every account is held against what the
//! generators counted.

use std::{io, os::unix::process::ExitStatusExt};

use gputap_ringbuf::{
    attach::{Attached, Counters},
    discover,
};

use super::{Held, Round};
use crate::storm::{
    balance::{Balance, Generated, check_stores},
    books::{Books, Sums},
    plan::{Found, MAX_TAPS, Number},
    reader::CLOSED,
};

impl Round<'_> {
    pub(super) fn end(&mut self) -> io::Result<()> {
        let status = self.writer.wait()?;
        self.writer_is_gone = true;
        if status.signal() != Some(libc::SIGKILL) {
            self.fault(&format!("the writer ended with {status}"));
        }
        self.plan().set(Number::Over, MAX_TAPS as u64);
        self.continue_readers();
        let all_ended =
            |r: &mut Round| r.readers.iter_mut().all(|reading| matches!(reading.child.try_wait(), Ok(Some(_))));
        if !self.wait_for("the readers to close their books", all_ended) {
            self.readers.iter_mut().for_each(|reading| _ = reading.child.kill());
        }
        for reading in std::mem::take(&mut self.readers) {
            self.close_reader(reading)?;
        }
        let mut taps = std::mem::take(&mut self.taps);
        taps.extend((taps.len()..self.plan().number(Number::Published) as usize).map_while(|tap| self.left_by(tap)));
        for (tap, held) in taps.into_iter().enumerate() {
            self.balance(tap, held);
        }
        self.add_up();
        Ok(())
    }

    /// A tap whose writer was killed before anybody held it: a named one has outlived it, unless a stranger swept it.
    fn left_by(&mut self, tap: usize) -> Option<Held> {
        let nonce = self.plan().nonce(tap);
        let open = |found: discover::Found| Attached::open(&found).ok().filter(|a| a.identity().nonce == nonce);
        let left = discover::discover().into_iter().filter(|f| !f.alive).find_map(open);
        let attempted = Generated::of_tap(self.plan(), tap).attempted;
        let may_be_gone = self.plan().number(Number::Memfd) == 1 || !self.storm.alone;
        if left.is_none() && may_be_gone {
            self.storm.totals.balance.add(Balance { attempted, unread: attempted, ..Balance::default() });
        } else if left.is_none() {
            self.fault("a named tap did not outlive its writer");
        }
        left.map(Held::Late)
    }

    /// The last reader closes its books; they, and those of the readers that lived, are held against the generators'.
    fn balance(&mut self, tap: usize, held: Held) {
        let mut books = match held {
            Held::Books(books) => books,
            Held::Late(attached) => Box::new(Books::open(attached)),
        };
        books.close();
        let mut faults = std::mem::take(&mut books.faults);
        let made = Generated::of_tap(self.plan(), tap);
        let counters = books.attached().counters();
        let balance = Balance::of(&made, &counters, &books.sums, &mut faults);
        check_stores(&made, &counters, &books.sums, Some(books.cubin_uses()), &mut faults);
        (0..self.readers_begun).for_each(|reader| self.balance_reader(reader, tap, &made, &counters, &mut faults));
        self.storm.totals.balance.add(balance);
        self.storm.totals.others.loads += made.loads;
        self.storm.totals.others.names += made.names;
        faults.iter().for_each(|fault| self.fault(&format!("tap {tap}: {fault}")));
    }

    /// The same for a reader that lived to close its books.
    fn balance_reader(
        &mut self,
        reader: usize,
        tap: usize,
        made: &Generated,
        counters: &Counters,
        faults: &mut Vec<String>,
    ) {
        let found = |what| self.plan().found(reader, what);
        if (found(Found::State), found(Found::Tap)) != (CLOSED, tap as u64) {
            return;
        }
        let sums = Sums {
            delivered: found(Found::Delivered),
            overwritten: found(Found::Overwritten),
            before_attach: found(Found::BeforeAttach),
            abandoned: found(Found::Abandoned),
            corrupt: found(Found::Corrupt),
            cubins: found(Found::Cubins),
            names: found(Found::Names),
        };
        let balance = Balance::of(made, counters, &sums, faults);
        check_stores(made, counters, &sums, None, faults);
        self.storm.totals.corrupt += sums.corrupt;
        self.storm.totals.readers.add(balance);
        self.storm.totals.readers_closed += 1;
    }

    fn add_up(&mut self) {
        let number = |n| self.plan().number(n);
        let (inherited, heirs) = (number(Number::Inherited), number(Number::HeirMended));
        let (housekeeping, leases) = (number(Number::HousekeepingMended), number(Number::LeasesRefused));
        let strangers = number(Number::Strangers);
        let others = &mut self.storm.totals.others;
        others.inherited += inherited;
        others.mended_by_heirs += heirs;
        others.mended_by_housekeeping += housekeeping;
        if strangers > 0 {
            self.fault("words were written from a line that is none of the places");
        }
        if leases > 0 {
            self.fault("the places for readers were all taken: those of the dead did not lapse");
        }
    }
}
