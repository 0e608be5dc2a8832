//! Counts the bytes that searches visit, so that tests can check that the work grows linearly with
//! the text. Outside of tests, nothing is counted.

#[cfg(test)]
thread_local! {
    /// Bytes that searches of this thread visited so far.
    static VISITED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Adds the bytes that one search visited.
#[cfg(test)]
pub(super) fn add(bytes: usize) {
    VISITED.set(VISITED.get() + bytes);
}

/// Does nothing: only tests count.
#[cfg(not(test))]
#[inline]
pub(super) const fn add(_bytes: usize) {}

/// Returns the number of bytes that searches of this thread visit during a call.
#[cfg(test)]
pub(super) fn during(call: impl FnOnce()) -> usize {
    let before = VISITED.get();
    call();
    VISITED.get() - before
}
