//! Panics of a run's tasks, which tokio keeps from those that began them.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    /// Those of this thread, in words.
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics of this thread are seen; those before are forgotten.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            SEEN.with_borrow_mut(|seen| seen.push(info.to_string()));
            tell(info);
        }));
    });
    SEEN.with_borrow_mut(Vec::clear);
}

/// The first that was seen.
pub(crate) fn first() -> Option<String> {
    SEEN.with_borrow(|seen| seen.first().cloned())
}
