//! The picture at many sizes, with what other programs may put into it.

use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::{
    CopyRow, Counts, Flags, InFlight, InFlightRow, KernelRow, Lost, ModuleRow, NamedTotal, Snapshot, Target, Total,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw;
use crate::view::input;
use crate::view::layout::Areas;
use crate::view::pages::Tab;
use crate::view::state::{Job, Overlay, View};
use crate::view::theme::Theme;

const WEIRD: [&str; 9] = [
    "",
    "gemm_kernel",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)",
    "核函数<汉字, テンプレート>(整数)",
    "\u{1b}[2J\u{1b}[31mred\u{7}\r\n\0",
    "👩‍👩‍👧‍👦 family e\u{301}",
    "\"quoted\\\"",
    "\u{202e}backwards",
    "a\tb",
];

pub fn snapshot(number: u64) -> Snapshot {
    let kernels = WEIRD.iter().enumerate().map(|(index, name)| KernelRow {
        name: (*name).to_owned(),
        mangled: format!("_Z{index}"),
        calls: number,
        total_ns: number / (index as u64 + 1),
        min_ns: number / 1000,
        max_ns: number,
        mean_ns: number as f64 / 10.0,
        p50_ns: number / 20,
        p99_ns: number / 2,
        share: 0.5 / (index as f64 + 1.0),
        grid: [u32::MAX, 1, 65535],
        block: [256, 1, 1],
        registers_per_thread: u16::MAX,
        ..Default::default()
    });
    Snapshot {
        target: Target {
            pid: 4_194_304,
            command: format!("python3 train.py {}", WEIRD[4]),
            alive: true,
            state: "recording".into(),
            reason: WEIRD[3].into(),
            cupti_version: 130_000,
            uptime_ns: number,
            ..Default::default()
        },
        elapsed_ns: number,
        kernels: kernels.collect(),
        copies: vec![CopyRow { direction: "HtoD".into(), copies: number, bytes: number, total_ns: number / 7 }],
        memsets: number,
        memset_bytes: number,
        modules: vec![
            ModuleRow {
                size_bytes: number,
                loads: number,
                crc32: Some(0xdead_beef),
                functions: WEIRD.map(str::to_owned).to_vec(),
                ..Default::default()
            };
            3
        ],
        counts: Counts {
            attempted: number,
            delivered: number,
            lost: vec![Lost { reason: "overwritten".into(), count: number, unknown: true }],
            flagged_times: number,
            flags: Flags { unfinished: number, zero: number, negative: number, doubtful: number },
            pending: number,
        },
        in_flight: InFlight {
            launches: number,
            open: number,
            uncertain: number,
            oldest: WEIRD.map(|name| InFlightRow { name: name.into(), age_ns: number, ..Default::default() }).to_vec(),
            ..Default::default()
        },
        notes: WEIRD.map(str::to_owned).to_vec(),
        kernels_per_s: number as f64,
        gpu_busy: 0.87,
        ..Default::default()
    }
}

fn picture(view: &mut View, width: u16, height: u16, theme: Theme, now: Instant) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let areas = Areas::of(ratatui::layout::Rect::new(0, 0, width, height));
    view.set_page(areas.table_rows());
    terminal.draw(|frame| draw(frame, view, theme, now)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = |y| (0..width).map(move |x| buffer[(x, y)].symbol());
    (0..height).map(|y| cells(y).collect()).collect()
}

fn press(view: &mut View, code: KeyCode, now: Instant) {
    input::key(view, KeyEvent::new(code, KeyModifiers::NONE), now);
}

#[test]
fn any_size_any_content() {
    let now = Instant::now();
    for colored in [true, false] {
        for number in [0, 1, 12_345_678, u64::MAX] {
            let mut view = View::new(Job::Running);
            view.update(snapshot(number));
            press(&mut view, KeyCode::Char('j'), now);
            for &tab in Tab::ALL {
                view.show(tab);
                for overlay in [Overlay::None, Overlay::Help, Overlay::Detail, Overlay::Leave] {
                    view.overlay = overlay;
                    for (width, height) in
                        [(1, 1), (1, 60), (200, 1), (2, 2), (5, 3), (20, 5), (33, 7), (80, 24), (120, 30), (200, 60)]
                    {
                        picture(&mut view, width, height, Theme::colored(colored), now);
                    }
                }
            }
        }
    }
}

#[test]
fn every_size_near_the_smallest() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    view.update(snapshot(1_234_567_890));
    for width in 1..60 {
        for height in 1..20 {
            picture(&mut view, width, height, Theme::colored(true), now);
        }
    }
}

#[test]
fn loss_is_on_the_screen_at_any_size() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    let mut lossy = snapshot(1000);
    lossy.counts.lost[0].count = 17;
    view.update(lossy);
    for (width, height) in [(20, 5), (40, 8), (80, 24), (200, 60)] {
        let picture = picture(&mut view, width, height, Theme::colored(false), now).join("\n");
        assert!(picture.contains("lost 17"), "{width}×{height}:\n{picture}");
    }
}

#[test]
fn the_fourth_line_tells_what_is_in_flight_and_notes_or_else_the_cost() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    let mut fourth = |snapshot: Snapshot| {
        view.update(snapshot);
        picture(&mut view, 200, 30, Theme::colored(true), now)[3].trim().to_owned()
    };
    assert_eq!(fourth(Snapshot::default()), "");
    let overheads =
        vec![NamedTotal { id: Some(1), name: "buffer flush", total: Total { count: 3, ..Total::default() } }];
    let costly = Snapshot { overheads, ..Snapshot::default() };
    assert_eq!(fourth(costly.clone()), "overhead: buffer flush 3 ×, 0 ns");
    let in_flight = InFlight { launches: 5, open: 2, ..InFlight::default() };
    let noted = Snapshot { notes: vec!["a note".into()], in_flight, ..costly };
    assert_eq!(fourth(noted), "in flight 2  a note");
}

#[test]
fn nothing_that_a_terminal_would_obey_is_drawn() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    view.update(snapshot(5));
    for &tab in Tab::ALL {
        view.show(tab);
        let picture = picture(&mut view, 200, 60, Theme::colored(true), now).concat();
        assert!(!picture.chars().any(char::is_control), "{picture:?}");
    }
}

#[test]
fn ascii_is_all_there_is_where_it_is_all_there_may_be() {
    let now = Instant::now();
    let theme = Theme { ascii: true, ..Theme::colored(true) };
    let mut view = View::new(Job::Running);
    for number in [0, 1000, 12_345_678, 5_000_000_000] {
        view.update(snapshot(number));
        view.busy_history.extend([0.0, 0.1, 0.4, 0.7, 1.0]);
        view.log = vec!["naïve 核 ██▏ step 1".into()];
        for &tab in Tab::ALL {
            view.show(tab);
            press(&mut view, KeyCode::Char('j'), now);
            for overlay in [Overlay::None, Overlay::Help, Overlay::Detail, Overlay::Leave] {
                view.overlay = overlay;
                for (width, height) in [(20, 5), (80, 24), (200, 60)] {
                    let picture = picture(&mut view, width, height, theme, now);
                    let strange = picture.iter().find(|line| !line.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                    assert_eq!(strange, None, "{tab:?} {overlay:?} {width}×{height}");
                }
                view.overlay = Overlay::None;
            }
        }
    }
}

#[test]
fn keys_have_names_in_ascii() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    let mut foot = |ascii| {
        let theme = Theme { ascii, ..Theme::colored(false) };
        picture(&mut view, 120, 24, theme, now).pop().unwrap()
    };
    assert!(foot(false).contains("⏎ detail"));
    assert!(foot(true).contains("Enter detail"));
}

#[test]
fn a_held_row_stays_held_as_the_order_changes() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    view.update(snapshot(1000));
    view.set_page(5);
    press(&mut view, KeyCode::Char('j'), now);
    press(&mut view, KeyCode::Char('j'), now);
    let held = view.table().held.clone().unwrap();
    let mut later = snapshot(1000);
    for (index, row) in later.kernels.iter_mut().enumerate() {
        row.total_ns = index as u64;
    }
    view.update(later);
    let at = view.selected().unwrap();
    assert_eq!(view.snapshot.kernels[view.rows[at]].mangled, held);
    assert!((view.table().offset..view.table().offset + 5).contains(&at), "and in sight");
}

#[test]
fn frozen_is_frozen_and_the_filter_filters() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    view.update(snapshot(1000));
    press(&mut view, KeyCode::Char(' '), now);
    view.update(snapshot(5));
    assert_eq!(view.snapshot.elapsed_ns, 1000);
    for key in "/GEMM".chars() {
        press(&mut view, KeyCode::Char(key), now);
    }
    assert_eq!(view.rows.len(), 1);
    press(&mut view, KeyCode::Esc, now);
    assert_eq!(view.rows.len(), WEIRD.len());
}

#[test]
fn a_running_job_is_asked_about_and_a_foreign_one_is_never_sent_anything() {
    let now = Instant::now();
    let key = |code, modifiers| KeyEvent::new(code, modifiers);
    let control_c = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let q = key(KeyCode::Char('q'), KeyModifiers::NONE);
    let mut own = View::new(Job::Running);
    assert_eq!(input::key(&mut own, control_c, now), input::Action::Interrupt);
    assert_eq!(input::key(&mut own, q, now), input::Action::Nothing);
    assert_eq!(own.overlay, Overlay::Leave);
    assert_eq!(input::key(&mut own, key(KeyCode::Char('e'), KeyModifiers::NONE), now), input::Action::EndJob);
    let mut foreign = View::new(Job::Foreign);
    assert_eq!(input::key(&mut foreign, control_c, now), input::Action::Quit);
    assert_eq!(input::key(&mut foreign, q, now), input::Action::Quit);
}

#[test]
fn what_a_key_did_is_said_for_a_while() {
    let now = Instant::now();
    let mut view = View::new(Job::Foreign);
    press(&mut view, KeyCode::Char('s'), now);
    assert_eq!(view.status(now), Some("sorted by calls"));
    assert_eq!(view.status(now + Duration::from_secs(60)), None);
}
