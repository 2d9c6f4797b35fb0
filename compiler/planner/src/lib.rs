//! dfc-planner
