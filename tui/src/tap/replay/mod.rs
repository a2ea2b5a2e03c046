//! A recording, played: the same figures in the same view, at times that a person controls.

mod playback;
mod player;

pub use playback::Playback;

use std::path::Path;
use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::model::timeline::{Stretch, Timeline};
use gputap_recording::{Recorded, Recording};

use super::{Peer, Source, Standing};
use crate::error::Result;
use player::Player;

/// A step takes at most about so long, however much there is: keys and signals wait for it.
const STEP_MAX: Duration = Duration::from_millis(30);

pub struct Replay {
    players: Vec<Player>,
    /// Which one is looked at.
    at: usize,
    playback: Playback,
    /// Up to here all are to be played, wall time.
    target_ns: u64,
    is_behind: bool,
}

impl Replay {
    /// # Errors
    /// The folder cannot be read, or holds no recording.
    pub fn open(dir: &Path) -> Result<Replay> {
        let recording = Recording::open(dir)?;
        let beside = [dir.join("cubins"), dir.join("../cubins")];
        let cubins = beside.iter().find(|path| path.is_dir()).unwrap_or(&beside[0]);
        let has_clocks = recording.processes().iter().all(|one| one.process.clock.is_some());
        let player = |recorded: &Recorded| {
            let clock = recorded.process.clock.filter(|_| has_clocks).unwrap_or_default();
            let offset_ns = clock.realtime_ns.wrapping_sub(clock.monotonic_ns);
            Player::new(recorded.clone(), cubins.clone(), offset_ns)
        };
        let players: Vec<Player> = recording.processes().iter().map(player).collect();
        let (began, ended): (Vec<u64>, Vec<u64>) = players.iter().map(Player::extent_ns).unzip();
        let began_ns = began.into_iter().min().unwrap_or(0);
        let playback = Playback::new(began_ns, ended.into_iter().max().unwrap_or(0));
        Ok(Replay { players, at: 0, playback, target_ns: began_ns, is_behind: false })
    }

    fn rewind(&mut self) {
        self.players = std::mem::take(&mut self.players).into_iter().map(Player::rewound).collect();
        self.target_ns = self.playback.began_ns;
        self.is_behind = false;
    }

    fn player(&self) -> Option<&Player> {
        self.players.get(self.at)
    }
}

impl Source for Replay {
    fn step(&mut self) -> Result<bool> {
        let now = Instant::now();
        if self.playback.take_rewound() {
            self.rewind();
        }
        let at_ns = self.playback.advance(now);
        if self.is_behind {
            self.playback.hold_at(self.target_ns);
        } else {
            self.target_ns = at_ns;
        }
        let until = now + STEP_MAX;
        let (target_ns, mut in_time) = (self.target_ns, true);
        for player in &mut self.players {
            in_time &= player.play_to(target_ns, until);
            self.playback.end_ns = self.playback.end_ns.max(player.extent_ns().1);
        }
        self.is_behind = !in_time;
        Ok(self.is_behind)
    }

    fn snapshot(&mut self) -> Snapshot {
        self.player().map(Player::snapshot).unwrap_or_default()
    }

    /// A person may always start it again; but whoever waits for the end has seen all.
    fn ended(&self) -> bool {
        self.playback.is_at_end() && !self.is_behind
    }

    fn pending_checksums(&self) -> usize {
        0
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {}

    fn timeline(&mut self, stretch: Stretch) -> Timeline {
        self.player().map(|player| player.model().timeline(stretch, player.played_to())).unwrap_or_default()
    }

    fn step_ns(&mut self) -> Option<u64> {
        self.player().and_then(|player| player.model().step_ns(player.played_to()))
    }

    /// In the order of hosts, ranks and pids, as the recording has them.
    fn peers(&mut self) -> Vec<Peer> {
        let has_hosts = self.players.windows(2).any(|two| host(&two[0]) != host(&two[1]));
        let peer = |(place, player): (usize, &Player)| {
            let process = &player.recorded().process;
            let standing = Standing {
                rank: process.rank,
                host: if has_hosts { process.host.clone() } else { String::new() },
                visible: process.variables.get("CUDA_VISIBLE_DEVICES").cloned().unwrap_or_default(),
            };
            let step_ns = player.model().step_ns(player.played_to());
            Peer { is_shown: place == self.at, ..Peer::new(place as u64, standing, &player.snapshot(), step_ns) }
        };
        self.players.iter().enumerate().map(peer).collect()
    }

    fn peer_count(&self) -> usize {
        self.players.len()
    }

    fn look_at(&mut self, key: u64) {
        self.at = (key as usize).min(self.players.len().saturating_sub(1));
    }

    fn playback(&mut self) -> Option<&mut Playback> {
        Some(&mut self.playback)
    }
}

fn host(player: &Player) -> &str {
    &player.recorded().process.host
}

#[cfg(test)]
mod tests;
