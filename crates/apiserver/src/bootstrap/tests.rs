//! What a logical cluster begins with.
