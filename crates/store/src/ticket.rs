//! The pending result of a write: wait for it on a thread, or await it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex};

#[derive(Debug)]
pub struct Ticket<T>(Arc<Cell<T>>);

/// The other end: sends the result once.
#[derive(Debug)]
pub(crate) struct Sender<T>(Arc<Cell<T>>);

#[derive(Debug)]
struct Cell<T> {
    state: Mutex<State<T>>,
    answered: Condvar,
}

#[derive(Debug)]
struct State<T> {
    send: Option<T>,
    waker: Option<Waker>,
}

pub(crate) fn pair<T>() -> (Sender<T>, Ticket<T>) {
    let state = Mutex::new(State { send: None, waker: None });
    let cell = Arc::new(Cell { state, answered: Condvar::new() });
    (Sender(Arc::clone(&cell)), Ticket(cell))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, send: T) {
        let mut state = self.0.state.lock();
        state.send = Some(send);
        self.0.answered.notify_one();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl<T> Ticket<T> {
    /// Waits for the result on this thread.
    pub fn wait(self) -> T {
        let mut state = self.0.state.lock();
        loop {
            match state.send.take() {
                Some(send) => return send,
                None => self.0.answered.wait(&mut state),
            }
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.state.lock();
        if let Some(send) = state.send.take() {
            return Poll::Ready(send);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
