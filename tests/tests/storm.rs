//! A short storm passes, and a storm over a broken protocol does not: each way to break it is seen in the books.

use std::{process::Command, time::Duration};

use gputap_tests::{Finished, run_under_watchdog, storm::Sabotage};

const LIMIT: Duration = Duration::from_secs(120);

fn storm(words: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_storm"));
    run_under_watchdog(command.args(words), LIMIT).unwrap_or_else(|error| panic!("{error}"))
}

/// The numbers of the last line, by name.
fn last_line(finished: &Finished) -> impl Fn(&str) -> u64 {
    let line = finished.stdout.lines().last().unwrap_or_default().to_owned();
    move |name| {
        let mut words = line.split(' ').skip_while(|word| *word != name).skip(1);
        let number = words.next().and_then(|word| word.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {line:?}"))
    }
}

#[test]
fn a_storm_over_the_protocol_passes_and_its_books_balance() {
    let finished = storm(&["--kills", "200", "--seed", "7"]);
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    let last = last_line(&finished);
    assert_eq!(last("kills"), 200);
    assert!(last("delivered") > 0 && last("lost") > 0);
    assert_eq!(last("attempted"), last("delivered") + last("lost"));
    assert_eq!((last("corrupt"), last("hung"), last("leftovers")), (0, 0, 0));
    assert!(finished.stdout.contains("places, before and after: 0 never hit"), "{}", finished.stdout);
}

#[test]
fn a_storm_over_a_broken_protocol_fails() {
    for how in Sabotage::ALL {
        // As many kills as it takes: it ends with the first round whose books are wrong.
        let finished = storm(&["--kills", "1500", "--seed", "7", "--break", how.name()]);
        let last = last_line(&finished);
        println!("{}: {} kills, {} faults", how.name(), last("kills"), last("corrupt"));
        assert_eq!(finished.status.code(), Some(1), "{}: {}", how.name(), finished.stdout);
        assert!(last("corrupt") > 0, "{}: {}", how.name(), finished.stdout);
        assert_eq!(last("leftovers"), 0, "{}", how.name());
    }
}
