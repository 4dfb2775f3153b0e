//! What the audit log tells, and what it keeps to itself.
