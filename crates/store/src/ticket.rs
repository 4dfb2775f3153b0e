//! The answer to a write that is under way: wait for it from a thread, or await it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex};

#[derive(Debug)]
pub struct Ticket<T>(Arc<Cell<T>>);

/// The other end: answers once.
#[derive(Debug)]
pub(crate) struct Reply<T>(Arc<Cell<T>>);

#[derive(Debug)]
struct Cell<T> {
    state: Mutex<State<T>>,
    answered: Condvar,
}

#[derive(Debug)]
struct State<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

pub(crate) fn pair<T>() -> (Reply<T>, Ticket<T>) {
    let state = Mutex::new(State { answer: None, waker: None });
    let cell = Arc::new(Cell { state, answered: Condvar::new() });
    (Reply(Arc::clone(&cell)), Ticket(cell))
}

impl<T> Reply<T> {
    pub(crate) fn answer(self, answer: T) {
        let mut state = self.0.state.lock();
        state.answer = Some(answer);
        self.0.answered.notify_one();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl<T> Ticket<T> {
    /// Waits for the answer on this thread.
    pub fn wait(self) -> T {
        let mut state = self.0.state.lock();
        loop {
            match state.answer.take() {
                Some(answer) => return answer,
                None => self.0.answered.wait(&mut state),
            }
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.state.lock();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
