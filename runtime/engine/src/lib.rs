//! dfc-engine
