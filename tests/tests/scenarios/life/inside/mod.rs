//! In the application: the words of these scenarios.

mod children;
pub mod driver;
mod limits;
mod making;
mod portrait;
mod signals;
mod threads;

use crate::app::Inside;

unsafe extern "C" {
    fn quick_exit(code: i32) -> !;
}

/// What is answered to `words`; None where they are not ours.
pub fn obey(inside: &mut Inside, words: &[&str]) -> Option<String> {
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let ok = || String::from("ok");
    Some(match words {
        ["pid"] => std::process::id().to_string(),
        ["portrait"] => portrait::portrait(),
        // Children.
        ["child", how, leave] => children::leaves(inside, how, leave, false),
        ["child", how, leave, "launch"] => children::leaves(inside, how, leave, true),
        ["workers", _] => children::start_workers(inside, number(1)),
        ["dismiss"] => children::dismiss_workers(),
        ["daemon", folder] => children::daemonize(folder),
        ["run", how, folder] => children::run(how, folder).to_string(),
        ["reap", _] => making::reap(number(1) as libc::pid_t).to_string(),
        // Threads in the middle of something.
        ["door"] => threads::open_the_door(),
        ["exit-with-lock"] => threads::exit_with_the_drivers_lock(),
        ["freeze"] => threads::freeze_in_a_callback(inside),
        ["thaw"] => threads::thaw(),
        ["exit-in-callback"] => threads::exit_in_a_callback(inside),
        ["busy", _] => threads::start_busy(inside, number(1)),
        ["late-handler", _] => threads::add_exit_handler(number(1)),
        // Signals.
        ["handle"] => signals::handle(),
        ["handled"] => signals::handled(),
        ["exit-at", _] => signals::exit_at(number(1)),
        ["sigwait"] => signals::wait(),
        // Limits and identity.
        ["close-all"] => limits::close_all(),
        ["still-open"] => limits::still_open(),
        ["spare-descriptors", _] => limits::spare_descriptors(number(1)),
        ["processes", _] => limits::processes(number(1)),
        ["user", _] => limits::become_user(number(1)),
        ["fill", path] => limits::fill(path),
        // Contexts.
        ["contexts", _, _] => {
            let (contexts, launches) = (number(1), number(2));
            (0..contexts).for_each(|seed| inside.in_a_context_of_its_own(seed % 8, launches));
            ok()
        }
        ["reset"] => {
            inside.reset_device();
            ok()
        }
        // Ends.
        ["long", _] => {
            inside.launch_long(number(1));
            ok()
        }
        // SAFETY: runs the handlers of at_quick_exit, of which there are none.
        ["quick_exit"] => unsafe { quick_exit(0) },
        _ => return None,
    })
}
