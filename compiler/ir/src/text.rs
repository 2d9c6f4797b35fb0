//! The text form of the IR, for `dfc plan` and golden tests.
