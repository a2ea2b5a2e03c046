//! Recordings that a generator makes, played: what is shown at a time is what had happened by then.

use gputap_ringbuf::event::EventKind;
use gputap_sample::Sample;

use super::*;

fn sample() -> Sample {
    Sample { kernels: 4_500, ..Sample::default() }
}

fn recorded(sample: &Sample) -> (tempfile::TempDir, gputap_sample::Wrote) {
    let dir = tempfile::tempdir().unwrap();
    let wrote = sample.write(dir.path()).unwrap();
    (dir, wrote)
}

/// Plays by steps of the clock, without waiting for it.
fn play_to_the_end(replay: &mut Replay) {
    while !replay.ended() {
        replay.playback.step();
        while replay.step().unwrap() {}
    }
}

#[test]
fn in_the_end_all_was_played() {
    let (dir, wrote) = recorded(&sample());
    let mut replay = Replay::open(dir.path()).unwrap();
    assert_eq!(replay.peer_count(), 2);
    play_to_the_end(&mut replay);
    for (key, process) in wrote.processes.iter().enumerate() {
        replay.look_at(key as u64);
        let snapshot = replay.snapshot();
        let kernels: u64 = snapshot.kernels.iter().map(|row| row.calls).sum();
        let expected = process.by_kind[EventKind::Kernel as usize];
        assert_eq!((snapshot.target.pid, kernels), (process.process.pid, expected));
        assert!(snapshot.kernels.len() > 30, "by name");
        assert!(!snapshot.target.alive && snapshot.counts.attempted > 0);
    }
}

#[test]
fn half_way_about_half_was_played_and_again_from_the_start_the_same() {
    let (dir, _) = recorded(&Sample { kernels: 180_000, ..Sample::default() });
    let mut replay = Replay::open(dir.path()).unwrap();
    let kernels = |replay: &mut Replay| replay.snapshot().kernels.iter().map(|row| row.calls).sum::<u64>();
    let half = |replay: &mut Replay| {
        while replay.playback.share() < 0.5 {
            replay.playback.step();
            while replay.step().unwrap() {}
        }
        kernels(replay)
    };
    let first = half(&mut replay);
    play_to_the_end(&mut replay);
    let all = kernels(&mut replay);
    assert!((all / 4..all * 9 / 10).contains(&first), "{first} of {all}");
    replay.playback.rewind();
    replay.playback.step();
    assert_eq!(half(&mut replay), first);
}

#[test]
fn the_straggler_waits_least_in_collectives() {
    let (dir, _) = recorded(&Sample { straggler: Some((1, 40)), kernels: 45_000, pause_every: 0, ..Sample::default() });
    let mut replay = Replay::open(dir.path()).unwrap();
    play_to_the_end(&mut replay);
    let peers = replay.peers();
    assert_eq!(peers.iter().map(|peer| peer.standing.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert!(
        peers[0].work.collective > peers[1].work.collective,
        "{:?}",
        peers.iter().map(|peer| peer.work).collect::<Vec<_>>()
    );
}

#[test]
fn a_recording_that_was_cut_off_is_played_up_to_the_cut() {
    let (dir, _) = recorded(&Sample { unfinished: true, ..sample() });
    let mut replay = Replay::open(dir.path()).unwrap();
    play_to_the_end(&mut replay);
    assert!(replay.snapshot().kernels.iter().map(|row| row.calls).sum::<u64>() > 1_000);
}

#[test]
fn a_folder_without_a_recording_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = Replay::open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("holds no recording"), "{error}");
}
