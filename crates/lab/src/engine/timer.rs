//! A timer that wakes a thread which waits for sockets: to the microsecond, where a timeout of `epoll` has
//! milliseconds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer of the operating system.
#[derive(Debug)]
pub(super) struct Timer(OwnedFd);

impl Timer {
    /// One that is not set, and that wakes whoever waits for events with this token.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Timer> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Timer(timer))
    }

    /// Wakes once, after this time.
    pub(super) fn set(&self, after: Duration) -> io::Result<()> {
        // Zero would take it off.
        let after = after.max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}
