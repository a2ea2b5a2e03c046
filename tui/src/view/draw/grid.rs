//! A table whose columns leave in an order of their own as the window narrows. The last column takes what is left.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::text;
use crate::view::order::{Column, Sort};
use crate::view::theme::Theme;

pub struct Spec {
    pub column: Column,
    pub title: &'static str,
    pub width: usize,
    pub right: bool,
    /// Lower stays longer.
    pub rank: u8,
}

pub const fn spec(column: Column, title: &'static str, width: usize, right: bool, rank: u8) -> Spec {
    Spec { column, title, width, right, rank }
}

pub struct Grid<'a> {
    pub specs: &'a [Spec],
    /// Columns that the last one wants at least, as long as any other is there to give way.
    pub last_min: usize,
    pub sort: Option<Sort>,
    pub selected: Option<usize>,
    pub offset: usize,
}

pub type Cell = (String, Style);

impl Grid<'_> {
    /// `cell(row, column, width)` is asked for what is on the screen only.
    pub fn draw(
        &self,
        frame: &mut Frame,
        area: Rect,
        theme: Theme,
        rows: &[usize],
        cell: impl Fn(usize, Column, usize) -> Cell,
    ) {
        let shown = self.fit(area.width.into());
        line_at(frame, area, 0, &self.titles(&shown, theme));
        let below = usize::from(area.height.saturating_sub(1));
        for (place, &row) in rows.iter().enumerate().skip(self.offset).take(below) {
            let mut line = Line::default();
            for &(index, width) in &shown {
                let spec = &self.specs[index];
                let (words, style) = cell(row, spec.column, width);
                if !line.spans.is_empty() {
                    line.push_span(" ");
                }
                line.push_span(Span::styled(text::pad(&words, width, spec.right), style));
            }
            if self.selected == Some(place) {
                let words: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
                line = Line::styled(text::pad(&words, area.width.into(), false), theme.selected());
            }
            line_at(frame, area, (place - self.offset) as u16 + 1, &line);
        }
    }

    fn titles(&self, shown: &[(usize, usize)], theme: Theme) -> Line<'static> {
        let mut line = Line::default();
        for &(index, width) in shown {
            let spec = &self.specs[index];
            let sorted = self.sort.filter(|sort| sort.column == spec.column);
            let mark = match sorted {
                Some(Sort { reversed: false, .. }) => "▾",
                Some(_) => "▴",
                None => "",
            };
            let title = format!("{}{mark}", spec.title);
            line.push_span(Span::styled(text::pad(&title, width, spec.right), theme.column_title(sorted.is_some())));
            line.push_span(" ");
        }
        line
    }

    /// The columns that fit, as places in `specs`, each with its width.
    pub fn fit(&self, total: usize) -> Vec<(usize, usize)> {
        let last = self.specs.len() - 1;
        let mut by_rank: Vec<usize> = (0..last).collect();
        by_rank.sort_by_key(|&index| self.specs[index].rank);
        let mut left = total.saturating_sub(self.last_min);
        let mut shown = Vec::new();
        for index in by_rank {
            let taken = self.specs[index].width + 1;
            if taken > left {
                break;
            }
            left -= taken;
            shown.push(index);
        }
        shown.sort_unstable();
        let used: usize = shown.iter().map(|&index| self.specs[index].width + 1).sum();
        let mut widths: Vec<(usize, usize)> = shown.iter().map(|&index| (index, self.specs[index].width)).collect();
        widths.push((last, total.saturating_sub(used)));
        widths
    }
}

/// A bar of up to `width` columns, in eighths of one.
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let mut eighths = (share * width as f64 * 8.0).round() as usize;
    if share > 0.0 {
        eighths = eighths.max(1);
    }
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}
