//! Where things are, at any size: what matters most stays longest as the window shrinks.

use ratatui::layout::Rect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    /// One to four lines.
    pub head: Rect,
    /// One line or none.
    pub tabs: Rect,
    pub body: Rect,
    /// One line or none.
    pub foot: Rect,
}

impl Areas {
    pub fn of(area: Rect) -> Areas {
        let head_lines = match area.height {
            0..=1 => 0,
            2..=7 => 1,
            8..=11 => 2,
            12..=15 => 3,
            _ => 4,
        };
        let tab_lines = u16::from(area.height >= 8);
        let foot_lines = u16::from(area.height >= 4);
        let slice = |y: u16, height: u16| {
            let y = y.min(area.height);
            Rect { x: area.x, y: area.y + y, width: area.width, height: height.min(area.height - y) }
        };
        let body_from = head_lines + tab_lines;
        let body_lines = area.height.saturating_sub(body_from + foot_lines);
        Areas {
            head: slice(0, head_lines),
            tabs: slice(head_lines, tab_lines),
            body: slice(body_from, body_lines),
            foot: slice(body_from + body_lines, foot_lines),
        }
    }

    /// Rows below the column titles.
    pub fn table_rows(&self) -> usize {
        usize::from(self.body.height.saturating_sub(1))
    }
}
