//! Ids that two processes never share, whatever their pids, streams and correlation ids are.

use gputap_recording::Process;

/// Makes ids from what tells a process from all others of all hosts.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    seed: u64,
}

impl Identity {
    pub fn of(process: &Process) -> Identity {
        let (boot_id, pid, start_ticks, nonce) = process.key();
        let text = format!("{boot_id}/{pid}/{start_ticks}/{nonce}");
        Identity { seed: text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| mixed(hash ^ u64::from(byte))) }
    }

    /// A track's uuid: `what` tells kinds of tracks apart, `numbers` those of one kind. Never 0.
    pub fn track(self, what: &str, numbers: [u64; 4]) -> u64 {
        let hash = what.bytes().map(u64::from).chain(numbers).fold(self.seed, |hash, word| mixed(hash ^ word));
        hash.max(1)
    }

    /// Of the flow from a call to its work: different for each correlation id of a process, since the mixing is one to one.
    pub fn flow(self, correlation_id: u64) -> u64 {
        mixed(self.seed ^ correlation_id)
    }
}

/// splitmix64's last step.
fn mixed(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_the_same() {
        let mut seen = HashSet::new();
        // One pid on two hosts: only boot and nonce differ.
        for boot in ["a", "b"] {
            let process = Process { pid: 17, boot_id: boot.to_owned(), ..Process::default() };
            let identity = Identity::of(&process);
            for number in 0..2_000 {
                assert!(seen.insert(identity.flow(number)));
                assert!(seen.insert(identity.track("stream", [0, 1, number, 0])));
                assert!(seen.insert(identity.track("lane", [0, 1, number, 0])));
                assert!(seen.insert(identity.track("stream", [number + 1, 1, 0, 0])));
            }
        }
    }
}
