//! What became of fields that an operator took out: left out by a `select`, renamed, not kept by an `aggregate` …
//!
//! It compares the fields before and after each link, whatever the operator: no operator's rule has to say it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dfc_grammar::ast::Call;
use dfc_typeck::{Column, Gone};

use super::ItemContext;

/// Fields remembered of one stream. More are not worth their memory.
const KEPT: usize = 1_000;

impl ItemContext<'_> {
    /// The fields that are gone after a link, with those that were gone before it and those of its other side (`right`).
    pub(super) fn gone_after(
        &self,
        gone: &Arc<Vec<Gone>>,
        before: Option<&[Column]>,
        after: Option<&[Column]>,
        link: &Call,
        right: &[Gone],
    ) -> Arc<Vec<Gone>> {
        let (Some(before), Some(after)) = (before, after) else { return gone.clone() };
        let names: HashSet<&str> = after.iter().map(|c| c.name.as_str()).collect();
        let has = |name: &str| names.contains(name);
        let lost: Vec<&Column> = before.iter().filter(|c| !has(&c.name)).collect();
        if lost.is_empty() && right.is_empty() && !gone.iter().any(|g| has(&g.name)) {
            return gone.clone();
        }
        let successors = Successors::new(before, after);
        let mut out: Vec<Gone> = right.iter().chain(gone.iter()).filter(|g| !has(&g.name)).cloned().collect();
        // What a field was renamed to may be renamed again.
        for earlier in &mut out {
            let Some(now) = earlier.now.take_if(|now| !has(now)) else { continue };
            if let Some(column) = before.iter().find(|c| c.name == now) {
                let Gone { steps, now, help, .. } = self.lost(column, &successors, link);
                earlier.steps.extend(steps);
                (earlier.now, earlier.help) = (now, help);
            }
        }
        out.extend(lost.into_iter().map(|column| self.lost(column, &successors, link)));
        let surplus = out.len().saturating_sub(KEPT);
        out.drain(..surplus);
        Arc::new(out)
    }

    fn lost(&self, column: &Column, successors: &Successors<'_>, link: &Call) -> Gone {
        let (name, operator) = (&column.name, link.name.text.as_str());
        let now = successors.of(column);
        let (words, help) = match (&now, operator) {
            (Some(now), _) => (format!("`{name}` is called `{now}` from here on"), format!("write `{now}`")),
            (None, "select") => {
                (format!("`{name}` is left out by this `select`"), format!("add it there: `select(…, {name})`"))
            }
            (None, "drop") => (format!("`{name}` is dropped here"), "keep it: take it out of this `drop`".into()),
            (None, "aggregate") => (
                format!("`{name}` ends at this `aggregate`: it is neither a key nor an aggregate"),
                format!("add it there: `by: [{name}]`, or as an aggregate, `{name}: max({name})`"),
            ),
            (None, _) => (format!("`{name}` ends at this `{operator}`"), format!("keep it in this `{operator}`")),
        };
        Gone { name: name.clone(), steps: vec![self.step(link.name.span, words)], now, help }
    }

    /// Fields of the other side of a join that don't come out. `unmatched`: left rows without a partner come out too, to which the right
    /// side's key is null and no equal of the left one's.
    pub(super) fn gone_right(
        &self,
        right: &[Column],
        out: &[Column],
        equal: &[(String, String)],
        unmatched: bool,
        link: &Call,
    ) -> Vec<Gone> {
        let lost = right.iter().filter(|c| !out.iter().any(|o| o.name == c.name));
        lost.map(|column| {
            let (name, operator) = (&column.name, &link.name.text);
            let same = equal.iter().find(|(_, right)| right == name).map(|(left, _)| left.clone());
            let now = same.clone().filter(|_| !unmatched);
            let (words, help) = match &same {
                Some(left) if unmatched => (
                    format!("`{name}` of the right side is equal to `{left}` where a row has a partner, and isn't taken"),
                    format!(
                        "`take: [{name}, …]` of this `{operator}` gives the right side's, null without a partner; `{left}` is the left side's"
                    ),
                ),
                Some(left) => (
                    format!("`{name}` of the right side is equal to `{left}` and appears once, as `{left}`"),
                    format!("write `{left}`"),
                ),
                None => (
                    format!("`{name}` of the right side is not taken by this `{operator}`"),
                    format!("add it there: `take: [{name}, …]`"),
                ),
            };
            Gone { name: name.clone(), steps: vec![self.step(link.name.span, words)], now, help }
        })
        .collect()
    }
}

/// The fields that a link has given other names, by the names that they had.
struct Successors<'c>(HashMap<&'c str, Vec<&'c Column>>);

impl<'c> Successors<'c> {
    fn new(before: &[Column], after: &'c [Column]) -> Self {
        let known: HashSet<&str> = before.iter().map(|c| c.name.as_str()).collect();
        let mut renamed: HashMap<&str, Vec<&Column>> = HashMap::new();
        for column in after.iter().filter(|c| !known.contains(c.name.as_str())) {
            if let Some(was) = column.path.last().and_then(|step| step.was.as_deref()) {
                renamed.entry(was).or_default().push(column);
            }
        }
        Successors(renamed)
    }

    /// The name that a field has after the link: that of the field whose way goes on from its own.
    fn of(&self, column: &Column) -> Option<String> {
        let went_on = |c: &&&Column| c.path.len() == column.path.len() + 1 && c.path.starts_with(&column.path);
        self.0.get(column.name.as_str())?.iter().find(went_on).map(|c| c.name.clone())
    }
}
