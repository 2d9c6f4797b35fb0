//! The registry of codes. A code is never reused for another meaning. Each has a page in `codes/CODE.md`.
