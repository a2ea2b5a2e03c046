//! The shim and its clients at the control object: who holds a slot, what it wants, and whose commands are carried out.

use super::{LoomWords, check, race};
use gputap_ringbuf::{
    control::{
        Answer, Command, LEASE_NS, SLOTS,
        client::{ControlClient, ControlError},
        server::{ControlServer, Wishes},
    },
    event::EventKind,
    layout::LINE,
    sync::Ordering,
    words::{ReadWords, Words},
};

type Client = ControlClient<LoomWords>;

const KERNELS: u64 = EventKind::Kernel.bit();
const COPIES: u64 = EventKind::Memcpy.bit();
const SETS: u64 = EventKind::Memset.bit();

/// The shim, which refuses to stop and does anything else, and says so in a word of its own.
struct Shim {
    server: ControlServer<LoomWords>,
    effects: LoomWords,
    carried_out: Vec<Command>,
}

impl Shim {
    fn new() -> (Shim, LoomWords) {
        let words = LoomWords::new(LINE * (1 + SLOTS));
        let server = ControlServer::new(words.clone(), 1, 2);
        (Shim { server, effects: LoomWords::new(1), carried_out: Vec::new() }, words)
    }

    fn turn(&mut self, now_ns: u64) -> Wishes {
        let wishes = self.server.poll(now_ns);
        for waiting in &wishes.commands {
            let command = waiting.command.unwrap();
            self.carried_out.push(command);
            self.effects.store(0, self.carried_out.len() as u64, Ordering::Relaxed);
            self.server.answer(*waiting, answer_to(command));
        }
        wishes
    }

    fn times(&self, command: Command) -> usize {
        self.carried_out.iter().filter(|c| **c == command).count()
    }
}

fn answer_to(command: Command) -> Answer {
    if command == Command::Stop { Answer::Refused } else { Answer::Done }
}

/// A client comes while the shim makes the control object.
pub fn opening() {
    for swapped in [false, true] {
        check("control, opening", 3, move || {
            let words = LoomWords::new(LINE * (1 + SLOTS));
            let its_words = words.clone();
            let open = move || Client::take_slot(its_words, 10);
            let (_, opened) = race(swapped, move || ControlServer::new(words, 1, 2), open);
            assert!(matches!(opened, Ok(_) | Err(ControlError::NotControl { found: 0 })));
        });
    }
}

/// Two clients come, one of them maybe to the slot of a dead one, whose lease lapses.
pub fn claiming() {
    for swapped in [false, true] {
        check("control, claiming", 2, move || {
            let (mut shim, words) = Shim::new();
            let dead = Client::take_slot(words.clone(), 10).unwrap();
            dead.want(SETS);
            assert_eq!(shim.turn(0).kinds, SETS);
            let claim = |wish: u64, random: u64| {
                let words = words.clone();
                move || {
                    let client = Client::take_slot(words, random);
                    client.inspect(|client| client.want(wish)).ok()
                }
            };
            let shim_goes_on = move || {
                assert_eq!(shim.turn(LEASE_NS).kinds & SETS, 0);
                // Whoever has taken the place since, the dead client's wish is not revived.
                assert_eq!(shim.turn(LEASE_NS).kinds & SETS, 0);
                shim
            };
            let (mut shim, (a, b)) = race(swapped, shim_goes_on, {
                let (a, b) = (claim(KERNELS, 20), claim(COPIES, 30));
                move || race(swapped, a, b)
            });
            let wishes = shim.turn(LEASE_NS + 1);
            let wish_of = |client: &Option<Client>, wish| if client.is_some() { wish } else { 0 };
            assert_eq!(wishes.leases, usize::from(a.is_some()) + usize::from(b.is_some()));
            assert_eq!(wishes.kinds, wish_of(&a, KERNELS) | wish_of(&b, COPIES));
            assert!(a.iter().chain(&b).all(|client| client.renew()) && !dead.renew());
        });
    }
}

/// A client beats as its lease lapses: both sides agree about who holds the slot from the next beat on.
pub fn lapsing() {
    for swapped in [false, true] {
        check("control, lapsing", 3, move || {
            let (mut shim, words) = Shim::new();
            let client = Client::take_slot(words, 10).unwrap();
            client.want(KERNELS);
            assert_eq!(shim.turn(0).leases, 1);
            let shim_goes_on = move || {
                shim.turn(LEASE_NS);
                shim
            };
            let beat = move || {
                client.renew();
                client
            };
            let (mut shim, client) = race(swapped, shim_goes_on, beat);
            let held = client.renew();
            let wishes = shim.turn(LEASE_NS + 1);
            assert_eq!((wishes.leases, wishes.kinds), if held { (1, KERNELS) } else { (0, 0) });
        });
    }
}

/// A client wishes, and sends a command.
pub fn commanding() {
    for swapped in [false, true] {
        check("control, commanding", 3, move || {
            let (mut shim, words) = Shim::new();
            let client = Client::take_slot(words, 10).unwrap();
            let shim_goes_on = move || {
                let wishes = shim.turn(0);
                if !wishes.commands.is_empty() {
                    assert_eq!(wishes.kinds, KERNELS, "carried out without the wish told before it");
                }
                shim.turn(1);
                shim
            };
            let command = move || {
                client.want(KERNELS);
                let ticket = client.send(Command::Flush).unwrap();
                (client, ticket)
            };
            let (mut shim, (client, ticket)) = race(swapped, shim_goes_on, command);
            shim.turn(2);
            assert_eq!(shim.carried_out, [Command::Flush]);
            assert_eq!(client.answer(ticket).unwrap(), Some(Answer::Done));
        });
    }
}

/// A client waits for its answer.
pub fn answering() {
    for swapped in [false, true] {
        check("control, answering", 3, move || {
            let (mut shim, words) = Shim::new();
            let effects = shim.effects.clone();
            let client = Client::take_slot(words, 10).unwrap();
            let ticket = client.send(Command::Flush).unwrap();
            let shim_goes_on = move || {
                shim.turn(0);
                shim.turn(1);
                shim
            };
            let look = move || {
                if let Some(answer) = client.answer(ticket).unwrap() {
                    assert_eq!((answer, effects.load(0, Ordering::Relaxed)), (Answer::Done, 1));
                }
                client
            };
            let (shim, _client) = race(swapped, shim_goes_on, look);
            assert_eq!(shim.carried_out, [Command::Flush]);
        });
    }
}

/// A client that was stopped goes on while its lease lapses and an heir takes its slot.
pub fn waking() {
    for swapped in [false, true] {
        check("control, waking", 3, move || {
            let (mut shim, words) = Shim::new();
            let woken = Client::take_slot(words.clone(), 10).unwrap();
            shim.turn(0);
            let wake = move || {
                woken.want(SETS);
                let ticket = woken.send(Command::Stop);
                (woken, ticket)
            };
            let inherit = move || {
                shim.turn(LEASE_NS);
                let heir = Client::take_slot(words, 20).unwrap();
                heir.want(KERNELS);
                shim.turn(LEASE_NS);
                let ticket = heir.send(Command::Flush).unwrap();
                (shim, heir, ticket)
            };
            let ((woken, its_ticket), (mut shim, heir, ticket)) = race(swapped, wake, inherit);
            let wishes = shim.turn(LEASE_NS + 1);
            let held = woken.renew();
            assert_eq!(wishes.kinds, if held { KERNELS | SETS } else { KERNELS });
            assert_eq!((shim.times(Command::Flush), shim.times(Command::Stop)), (1, usize::from(held)));
            assert_eq!(heir.answer(ticket).unwrap(), Some(Answer::Done));
            match its_ticket {
                Ok(its_ticket) if held => assert_eq!(woken.answer(its_ticket).unwrap(), Some(Answer::Refused)),
                Ok(its_ticket) => assert!(matches!(woken.answer(its_ticket), Err(ControlError::Lapsed { .. }))),
                Err(error) => assert!(!held && matches!(error, ControlError::Lapsed { .. })),
            }
        });
    }
}

/// The same, while the shim looks at any time.
pub fn inheriting() {
    for swapped in [false, true] {
        check("control, inheriting", 3, move || {
            let (mut shim, words) = Shim::new();
            let woken = Client::take_slot(words.clone(), 10).unwrap();
            shim.turn(0);
            let shim_goes_on = move || {
                shim.turn(LEASE_NS);
                shim.turn(LEASE_NS);
                shim
            };
            let inherit = move || {
                let heir = Client::take_slot(words, 20).unwrap();
                let ticket = heir.send(Command::Flush).unwrap();
                (heir, ticket)
            };
            let wake = move || {
                let _ = woken.send(Command::Stop);
                woken
            };
            let (mut shim, ((heir, ticket), woken)) = race(swapped, shim_goes_on, move || race(swapped, inherit, wake));
            assert_eq!(shim.turn(LEASE_NS).leases, 1);
            assert!(heir.renew() && !woken.renew());
            assert_eq!(shim.carried_out, [Command::Flush]);
            assert_eq!(heir.answer(ticket).unwrap(), Some(Answer::Done));
        });
    }
}

/// A client goes, its command answered or not, and another takes its slot and sends one too.
pub fn leaving() {
    for swapped in [false, true] {
        check("control, leaving", 3, move || {
            let (mut shim, words) = Shim::new();
            let gone = Client::take_slot(words.clone(), 10).unwrap();
            let leave = move || {
                gone.want(SETS);
                gone.send(Command::Stop).unwrap();
                drop(gone);
                let heir = Client::take_slot(words, 30).unwrap();
                let ticket = heir.send(Command::Flush).unwrap();
                (heir, ticket)
            };
            let shim_goes_on = move || {
                shim.turn(0);
                shim
            };
            let (mut shim, (heir, ticket)) = race(swapped, shim_goes_on, leave);
            let stopped = shim.times(Command::Stop);
            let wishes = shim.turn(1);
            assert_eq!((wishes.leases, wishes.kinds), (1, 0));
            assert_eq!((shim.times(Command::Stop), shim.times(Command::Flush)), (stopped, 1));
            assert_eq!(heir.answer(ticket).unwrap(), Some(Answer::Done));
        });
    }
}

/// A client goes as its lease lapses: what the shim ends is not the lease of the next one.
pub fn leaving_late() {
    for swapped in [false, true] {
        check("control, leaving late", 3, move || {
            let (mut shim, words) = Shim::new();
            let gone = Client::take_slot(words.clone(), 10).unwrap();
            assert_eq!(shim.turn(0).leases, 1);
            let leave = move || {
                drop(gone);
                Client::take_slot(words, 30).unwrap()
            };
            let shim_goes_on = move || {
                shim.turn(LEASE_NS);
                shim
            };
            let (mut shim, heir) = race(swapped, shim_goes_on, leave);
            assert!(heir.renew() && shim.turn(LEASE_NS + 1).leases == 1);
        });
    }
}

#[test]
fn a_control_object_is_opened_whole() {
    opening();
}

#[test]
fn a_slot_has_one_holder_and_its_wish_is_its_own() {
    claiming();
    lapsing();
}

#[test]
fn a_command_is_carried_out_once_and_its_answer_tells_of_what_was_done() {
    commanding();
    answering();
}

#[test]
fn a_woken_client_takes_nothing_from_its_heir() {
    waking();
    inheriting();
}

#[test]
fn a_client_that_went_leaves_no_wish_and_no_command() {
    leaving();
    leaving_late();
}
