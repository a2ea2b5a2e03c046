use ratatui::Frame;
use ratatui::layout::Rect;

use super::line_at;
use crate::view::state::{Job, View};
use crate::view::theme::Theme;

pub fn draw(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    if view.job == Job::Foreign {
        let words = ["the output of a job is shown here when gputap starts it:".into(), "gputap top -- COMMAND".into()];
        return super::empty(frame, area, theme, &words);
    }
    for (index, line) in view.log.iter().enumerate().take(area.height.into()) {
        line_at(frame, area, index as u16, line);
    }
}
