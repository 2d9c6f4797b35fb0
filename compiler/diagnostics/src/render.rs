//! Renderers: ariadne for people, JSON lines for tools.
