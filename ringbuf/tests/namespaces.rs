//! Pid namespaces that share /dev/shm: who lives and who is dead is told from both sides, and each sweeps its own.
#![cfg(not(loom))]

mod child;

use child::{Child, backing, can_unshare, named, say, skip, small_tap, turn, wait_for};
use gputap_ringbuf::{
    attach::Attached,
    backing::create::create,
    discover::{self, Found},
};
use std::path::{Path, PathBuf};

const CONTAINER: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
/// As some sandboxes are: /proc is that of the namespace outside.
const WITH_OUTER_PROC: [&str; 4] = ["unshare", "--pid", "--fork", "--kill-child"];

/// What this test binary does when it is a child.
#[test]
fn child() {
    let role = child::role();
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words[..] {
        [] => {}
        ["writer"] => {
            let (_tap, created) = small_tap(backing("shm"));
            say(named(&created, "ring"));
            child::stay();
        }
        ["unfinished"] => {
            let created = create(child::SMALL, backing("shm")).unwrap();
            say(named(&created, "ring"));
            child::stay();
        }
        ["closes"] => closes_all(),
        ["stranger"] => child::stay(),
        ["container"] => container(),
        ["recycles"] => recycles(),
        ["starts"] => starts(),
        _ => panic!("{role:?}"),
    }
}

fn closes_all() {
    let (_tap, created) = small_tap(backing("shm"));
    say(named(&created, "ring"));
    // SAFETY: no memory is passed; this process uses none of them again.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    say("closed");
    child::stay();
}

fn seen(segment: &Path) -> Option<Found> {
    discover::discover().into_iter().find(|f| f.segment == segment)
}

fn seen_in_words(segment: &Path) -> String {
    match seen(segment) {
        Some(f) => format!("alive {} local {}", f.alive, f.local),
        None => "absent".into(),
    }
}

/// The first process of a pid namespace, which does there what it is told.
fn container() {
    let mut writer: Option<Child> = None;
    say("up");
    for question in child::questions() {
        let words: Vec<&str> = question.split(' ').collect();
        match words[..] {
            ["start"] => {
                let mut started = Child::start("writer");
                let segment = started.line();
                say(format_args!("{} {segment}", started.pid()));
                writer = Some(started);
            }
            ["kill"] => {
                writer.take().unwrap().kill();
                say("killed");
            }
            ["sees", segment] => say(seen_in_words(Path::new(segment))),
            ["sweep", segment] => say(discover::sweep().contains(&PathBuf::from(segment))),
            _ => panic!("{question}"),
        }
    }
}

/// A tap in a container, its pid there, and where its segment lies.
fn tap_in_a_container(what: &str, options: &[&str]) -> Option<(Child, u32, PathBuf)> {
    if !can_unshare(what, &options[1..]) {
        return None;
    }
    let mut container = Child::start_under(options, "container");
    assert_eq!(container.line(), "up");
    let started = container.ask("start");
    let (pid, segment) = started.split_once(' ').unwrap();
    Some((container, pid.parse().unwrap(), segment.into()))
}

/// Whether a sweep leaves no such segment: ours, or that of a tap which another test starts in this very moment.
fn sweeps(segment: &Path) -> Option<()> {
    discover::sweep();
    (!segment.exists()).then_some(())
}

fn remove(segment: &Path) {
    let _ = std::fs::remove_file(segment);
    let _ = std::fs::remove_file(segment.with_extension("ctl"));
}

#[test]
fn a_tap_in_a_container_is_seen_from_outside_and_swept_from_inside() {
    let _turn = turn();
    let Some((mut container, inner_pid, segment)) = tap_in_a_container("taps in containers", &CONTAINER) else {
        return;
    };
    let found = seen(&segment).unwrap();
    assert!(found.alive && found.local && found.pid != inner_pid, "{found:?}");
    assert_eq!(discover::find(found.pid).unwrap(), found);
    assert_eq!(container.ask(&format!("sees {}", segment.display())), "alive true local true");
    assert!(!discover::sweep().contains(&segment) && segment.exists(), "it lives");
    let reader = Attached::open(&found).unwrap();
    assert_eq!(container.ask("kill"), "killed");
    let dead = seen(&segment).unwrap();
    assert!(!dead.alive && !dead.local && dead.pid == inner_pid, "{dead:?}");
    let sweep = format!("sweep {}", segment.display());
    // The reader cannot be seen from inside: what keeps the segment is its lock.
    assert_eq!((container.ask(&sweep).as_str(), segment.exists()), ("false", true));
    drop(reader);
    assert!(!discover::sweep().contains(&segment) && segment.exists(), "it is not ours to sweep");
    assert_eq!((container.ask(&sweep).as_str(), segment.exists()), ("true", false));
}

#[test]
fn a_tap_outside_is_seen_from_a_container_and_swept_from_outside() {
    let _turn = turn();
    let Some((mut container, _, own)) = tap_in_a_container("taps outside containers", &CONTAINER) else { return };
    let mut writer = Child::start("writer");
    let segment = PathBuf::from(writer.line());
    let (sees, sweep) = (format!("sees {}", segment.display()), format!("sweep {}", segment.display()));
    assert_eq!(container.ask(&sees), "alive true local false");
    assert_eq!((container.ask(&sweep).as_str(), segment.exists()), ("false", true));
    // SAFETY: no memory is passed; the process is our child. A stopped one lives.
    assert_eq!(unsafe { libc::kill(writer.pid() as i32, libc::SIGSTOP) }, 0);
    assert_eq!(container.ask(&sees), "alive true local false");
    writer.kill();
    assert_eq!(container.ask(&sees), "alive false local false");
    assert_eq!((container.ask(&sweep).as_str(), segment.exists()), ("false", true));
    wait_for("the sweep", || sweeps(&segment));
    remove(&own);
}

#[test]
fn a_job_that_closed_its_descriptors_lives() {
    let _turn = turn();
    let Some((mut container, _, own)) = tap_in_a_container("closed descriptors outside", &CONTAINER) else { return };
    let mut writer = Child::start("closes");
    let segment = PathBuf::from(writer.line());
    assert_eq!(writer.line(), "closed");
    let sees = format!("sees {}", segment.display());
    assert_eq!(container.ask(&sees), "alive true local false");
    assert!(!discover::sweep().contains(&segment) && segment.exists(), "it lives");
    writer.kill();
    assert_eq!(container.ask(&sees), "alive false local false");
    wait_for("the sweep", || sweeps(&segment));
    remove(&own);
}

/// The number that a process has for itself is another's in such a /proc.
#[test]
fn a_proc_of_the_outer_namespace_does_not_make_the_living_dead() {
    let _turn = turn();
    let found = tap_in_a_container("containers with the outer /proc", &WITH_OUTER_PROC);
    let Some((mut container, _, segment)) = found else { return };
    assert_eq!(container.ask(&format!("sees {}", segment.display())), "alive true local true");
    assert_eq!((container.ask(&format!("sweep {}", segment.display())).as_str(), segment.exists()), ("false", true));
    assert_eq!(container.ask("kill"), "killed");
    assert_eq!(container.ask(&format!("sees {}", segment.display())), "alive false local true");
    assert_eq!((container.ask(&format!("sweep {}", segment.display())).as_str(), segment.exists()), ("true", false));
}

/// Two processes, one after the other, with the same pid: the namespace's counter is turned back between them.
fn recycles() {
    let next_is = |pid: u32| std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string());
    let mut first = Child::start("writer");
    let old = PathBuf::from(first.line());
    let pid = first.pid();
    first.kill();
    if let Err(error) = next_is(pid) {
        return say(format_args!("skip {error}"));
    }
    let mut unfinished = Child::start("unfinished");
    let half = PathBuf::from(unfinished.line());
    let same = unfinished.pid() == pid;
    unfinished.kill();
    next_is(pid).unwrap();
    let mut stranger = Child::start("stranger");
    assert!(stranger.pid() == pid && seen_in_words(&old) == "alive false local true");
    stranger.kill();
    next_is(pid).unwrap();
    let mut second = Child::start("writer");
    let new = PathBuf::from(second.line());
    assert!(same && second.pid() == pid, "the pid is not the same: {pid}");
    assert_eq!(
        (seen_in_words(&old).as_str(), seen_in_words(&new).as_str()),
        ("alive false local true", "alive true local true")
    );
    assert_eq!(discover::find(pid).unwrap().segment, new);
    let swept = discover::sweep();
    assert!(swept.contains(&old) && !swept.contains(&new) && new.exists());
    // One without a header is its pid's: it goes with the process that has it now.
    assert!(half.exists());
    second.kill();
    let swept = discover::sweep();
    assert!(swept.contains(&new) && swept.contains(&half));
    say("told apart");
}

#[test]
fn two_starts_with_one_pid_are_told_apart() {
    let _turn = turn();
    if !can_unshare("recycled pids", &CONTAINER[1..]) {
        return;
    }
    let mut container = Child::start_under(&CONTAINER, "recycles");
    match container.line().strip_prefix("skip ") {
        Some(why) => skip("recycled pids", why),
        None => assert!(container.wait().success()),
    }
}

/// Makes segments, one after the other, and looks whether each is still there once it is whole.
fn starts() {
    for _ in 0..300 {
        let (_tap, created) = small_tap(backing("shm"));
        for what in ["ring", "ctl"] {
            std::fs::remove_file(named(&created, what)).expect("nobody else has removed it");
        }
        // SAFETY: it is the whole mapping, made above, that nobody uses again: 300 of them would be much memory.
        unsafe { libc::munmap(created.words.bytes_at(0, 0).unwrap().as_ptr().cast(), created.words.len() * 8) };
    }
    say("all there");
}

#[test]
fn a_sweep_that_races_a_start_removes_nothing() {
    let _turn = turn();
    let mut starter = Child::start("starts");
    let said = std::thread::spawn(move || (starter.line(), starter.wait().success()));
    let mut sweeps = 0;
    while !said.is_finished() {
        discover::sweep();
        sweeps += 1;
    }
    assert_eq!(said.join().unwrap(), ("all there".into(), true));
    assert!(sweeps > 10, "{sweeps} sweeps are no race");
}
