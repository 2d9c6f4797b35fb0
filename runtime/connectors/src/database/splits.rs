//! Splits of a table: ranges of the first column that it is ordered by, each with its own position (F4). It may not know SQL.

use serde_json::{Value as Json, json};

use super::keys::{KeyValue, key_from_json, key_to_json, list_from_json, list_to_json};
use super::window::Reached;
use crate::SplitPosition;

/// Rows that one reader reads in the order of their key. All of a table's splits together are the table, and none overlaps another.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Split {
    /// The rows whose first order column is null.
    pub nulls: bool,
    /// Only rows above this value.
    pub above: Option<KeyValue>,
    /// Only rows up to this value.
    pub up_to: Option<KeyValue>,
}

/// A split and how far it has been read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SplitState {
    pub split: Split,
    /// How far.
    pub reached: Reached,
    pub ended: bool,
}

impl Split {
    /// The split at the upper end: new rows appear in it.
    pub(crate) fn is_top(&self) -> bool {
        !self.nulls && self.up_to.is_none()
    }

    /// Its name: the same in every run.
    pub(crate) fn name(&self, order: &[String]) -> String {
        let Some(lead) = order.first() else { return "all rows".into() };
        match (self.nulls, &self.above, &self.up_to) {
            (true, ..) => format!("{lead} is null"),
            (_, None, None) => "all rows".into(),
            (_, Some(low), None) => format!("{lead} above {low}"),
            (_, None, Some(high)) => format!("{lead} up to {high}"),
            (_, Some(low), Some(high)) => format!("{lead} above {low} up to {high}"),
        }
    }

    /// Ranges between these values, ascending and distinct, which the database's order says.
    pub(crate) fn between(bounds: Vec<KeyValue>) -> Vec<Split> {
        let mut splits = Vec::with_capacity(bounds.len() + 1);
        let mut above = None;
        for bound in bounds {
            splits.push(Split { nulls: false, above: above.take(), up_to: Some(bound.clone()) });
            above = Some(bound);
        }
        splits.push(Split { nulls: false, above, up_to: None });
        splits
    }
}

impl SplitState {
    /// Not begun.
    pub(crate) fn new(split: Split) -> SplitState {
        SplitState { split, reached: Reached::default(), ended: false }
    }

    /// As a checkpoint keeps it.
    pub(crate) fn position(&self, order: &[String], exact: bool) -> SplitPosition {
        let bound = |bound: &Option<KeyValue>| bound.as_ref().map_or(Json::Null, KeyValue::to_json);
        // The rows of the nulls differ by the other columns.
        let columns = &order[usize::from(self.split.nulls)..];
        let key = |key: &_| key_to_json(columns, key);
        let Reached { last, floor, seen } = &self.reached;
        let mut position = json!({
            "order": order,
            "nulls": self.split.nulls,
            "above": bound(&self.split.above),
            "up_to": bound(&self.split.up_to),
            "after": last.as_ref().map_or(Json::Null, key),
        });
        if !seen.is_empty() {
            position["again_after"] = floor.as_ref().map_or(Json::Null, key);
            position["seen"] = seen.iter().map(list_to_json).collect();
        }
        SplitPosition { split: self.split.name(order), position, ended: self.ended, exact }
    }

    /// From a checkpoint.
    ///
    /// # Errors
    /// Why it can't be gone on from there, as the end of a sentence.
    pub(crate) fn resume(kept: &SplitPosition, order: &[String]) -> Result<SplitState, String> {
        let broken = || format!("the position of `{}` is no position of a table", kept.split);
        let map = kept.position.as_object().ok_or_else(broken)?;
        let columns: Vec<&str> =
            map.get("order").and_then(Json::as_array).ok_or_else(broken)?.iter().filter_map(Json::as_str).collect();
        if columns != order {
            let list = |names: &[&str]| if names.is_empty() { "no key".into() } else { super::listed(names) };
            let now: Vec<&str> = order.iter().map(String::as_str).collect();
            return Err(format!(
                "it was read in the order of {}, and would now be in that of {}",
                list(&columns),
                list(&now)
            ));
        }
        let bound = |name: &str| match map.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(json) => KeyValue::from_json(json).map(Some).ok_or_else(broken),
        };
        let nulls = map.get("nulls") == Some(&Json::Bool(true));
        let columns = order.get(usize::from(nulls)..).ok_or_else(broken)?;
        let key = |name: &str| match map.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Object(key)) => key_from_json(columns, key).map(Some).ok_or_else(broken),
            Some(_) => Err(broken()),
        };
        let seen = match map.get("seen") {
            None => Vec::new(),
            Some(Json::Array(keys)) => {
                let keys = keys.iter().map(|key| list_from_json(columns.len(), key));
                keys.collect::<Option<_>>().ok_or_else(broken)?
            }
            Some(_) => return Err(broken()),
        };
        let reached = Reached { last: key("after")?, floor: key("again_after")?, seen };
        let split = Split { nulls, above: bound("above")?, up_to: bound("up_to")? };
        Ok(SplitState { split, reached, ended: kept.ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back() {
        let order = vec!["at".to_string(), "id".to_string()];
        for split in Split::between(vec![KeyValue::Int(5), KeyValue::Text("x".into())]) {
            let key = |n| vec![KeyValue::Int(4), KeyValue::Int(n)];
            let reached = Reached { last: Some(key(7)), floor: Some(key(1)), seen: vec![key(3), key(7)] };
            let state = SplitState { split, reached, ended: true };
            let kept = state.position(&order, true);
            assert_eq!(SplitState::resume(&kept, &order).unwrap(), state);
            let other = SplitState::resume(&kept, &order[..1]).unwrap_err();
            assert_eq!(other, "it was read in the order of `at`, `id`, and would now be in that of `at`");
        }
        let nulls = SplitState {
            split: Split { nulls: true, ..Split::default() },
            reached: Reached { last: Some(vec![KeyValue::Int(1)]), ..Reached::default() },
            ended: false,
        };
        assert_eq!(SplitState::resume(&nulls.position(&order, true), &order).unwrap(), nulls);
        let mut kept = nulls.position(&order, true);
        kept.position["seen"] = json!([[1, 2]]);
        assert!(SplitState::resume(&kept, &order).is_err(), "a key of too many columns");
        let hostile = SplitPosition { split: "x".into(), position: json!([]), ended: false, exact: true };
        assert!(SplitState::resume(&hostile, &order).is_err());
    }
}
