//! The views that a key chooses. A further one is a variant with an arm in each function here, in `draw::page` and
//! `input::page_key`, and in `run::ask` where it shows what the snapshot does not hold; its drawing, its state and its
//! keys are files of its own.

use std::borrow::Cow;

use super::order::{self, COPY_SORTS, Column, KERNEL_SORTS, MODULE_SORTS};
use super::panes::Pane;
use super::state::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Kernels,
    Streams,
    Copies,
    Modules,
    Ranks,
    InFlight,
    Happened,
    Output,
}

impl Tab {
    /// In the order of their digits.
    pub const ALL: &[Tab] =
        &[Tab::Kernels, Tab::Streams, Tab::Copies, Tab::Modules, Tab::Ranks, Tab::InFlight, Tab::Happened, Tab::Output];

    /// The key that chooses it, the same for good.
    pub const fn digit(self) -> char {
        match self {
            Tab::Kernels => '1',
            Tab::Streams => '2',
            Tab::Copies => '3',
            Tab::Modules => '4',
            Tab::Ranks => '5',
            Tab::InFlight => '6',
            Tab::Happened => '7',
            Tab::Output => '8',
        }
    }

    pub fn of_digit(digit: char) -> Option<Tab> {
        Tab::ALL.iter().copied().find(|tab| tab.digit() == digit)
    }

    /// The one `by` places further, round and round.
    pub fn turned(self, by: isize) -> Tab {
        Tab::ALL[(self.place() as isize + by).rem_euclid(Tab::ALL.len() as isize) as usize]
    }

    pub fn place(self) -> usize {
        Tab::ALL.iter().position(|&tab| tab == self).unwrap_or(0)
    }

    /// As the line of views has it.
    pub fn title(self) -> &'static str {
        match self {
            Tab::Kernels => "Kernels",
            Tab::Copies => "Copies & memory",
            Tab::Modules => "Modules",
            Tab::Streams => "Streams",
            Tab::Ranks => "Processes",
            Tab::InFlight => "In flight",
            Tab::Happened => "Events",
            Tab::Output => "Output",
        }
    }

    /// Of the title, where there is less room.
    pub fn short_title(self) -> &'static str {
        match self {
            Tab::Copies => "Copies",
            Tab::Ranks => "Procs",
            Tab::InFlight => "Flight",
            tab => tab.title(),
        }
    }

    /// What it has, behind its title.
    pub fn count(self, view: &View) -> Option<usize> {
        match self {
            Tab::Kernels => Some(view.snapshot.kernels.len()),
            Tab::Copies => None,
            Tab::Modules => Some(view.snapshot.modules.len()),
            Tab::Ranks => Some(view.panes.peer_count).filter(|&count| count > 1),
            Tab::Streams | Tab::InFlight | Tab::Happened | Tab::Output => None,
        }
    }

    /// The columns that its table can be sorted by, the first of which is where it begins; none where it is no table.
    pub fn sorts(self) -> &'static [Column] {
        match self {
            Tab::Kernels => KERNEL_SORTS,
            Tab::Copies => COPY_SORTS,
            Tab::Modules => MODULE_SORTS,
            Tab::Streams | Tab::Ranks | Tab::InFlight | Tab::Happened | Tab::Output => &[],
        }
    }

    /// Rows of its table as indices into what it shows, filtered and sorted as the view has it.
    pub fn rows(self, view: &View) -> Vec<usize> {
        let Some(sort) = view.sort() else { return Vec::new() };
        match self {
            Tab::Kernels => order::kernels(&view.snapshot, &view.filter, sort),
            Tab::Copies => order::copies(&view.snapshot, &view.filter, sort),
            Tab::Modules => order::modules(&view.snapshot, &view.filter, sort),
            Tab::Streams | Tab::Ranks | Tab::InFlight | Tab::Happened | Tab::Output => Vec::new(),
        }
    }

    /// What stays the same about a row while its numbers change. A module keeps its place for good.
    pub fn key(self, view: &View, row: usize) -> Cow<'_, str> {
        match self {
            Tab::Kernels => order::kernel_key(&view.snapshot.kernels[row]).into(),
            Tab::Copies => view.snapshot.copies[row].direction.as_str().into(),
            Tab::Modules => row.to_string().into(),
            Tab::Streams | Tab::Ranks | Tab::InFlight | Tab::Happened | Tab::Output => "".into(),
        }
    }

    /// Those that are no table of the snapshot.
    pub fn pane(self) -> Option<Pane> {
        match self {
            Tab::Streams => Some(Pane::Streams),
            Tab::Ranks => Some(Pane::Ranks),
            Tab::InFlight => Some(Pane::InFlight),
            Tab::Happened => Some(Pane::Happened),
            Tab::Kernels | Tab::Copies | Tab::Modules | Tab::Output => None,
        }
    }

    /// Whether Enter shows all about a row of it.
    pub fn has_detail(self) -> bool {
        matches!(self, Tab::Kernels | Tab::Modules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_told_apart_and_in_order() {
        assert!(Tab::ALL.is_sorted_by(|a, b| a.digit() < b.digit()));
        for &tab in Tab::ALL {
            assert_eq!(Tab::of_digit(tab.digit()), Some(tab));
        }
        assert_eq!(Tab::of_digit('9'), None);
    }

    #[test]
    fn the_last_is_followed_by_the_first() {
        let last = Tab::ALL[Tab::ALL.len() - 1];
        assert_eq!((last.turned(1), Tab::Kernels.turned(-1)), (Tab::Kernels, last));
    }
}
