//! Access as a whole.
