//! The functions that are ours. Ballista ships functions by name: a cluster that is to run `busy_ns` has to
//! register [`aggregates`] in its scheduler and executors, as `examples/cluster.rs` does.

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;

use crate::bucket::TimeBucket;
use crate::busy::BusyNs;

/// Functions of a row: `time_bucket`.
pub fn scalars() -> Vec<Arc<ScalarUDF>> {
    vec![Arc::new(ScalarUDF::new_from_impl(TimeBucket::new()))]
}

/// Functions of many rows: `busy_ns`.
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    vec![Arc::new(AggregateUDF::new_from_impl(BusyNs::new()))]
}

/// Makes them known.
pub(crate) fn register(context: &SessionContext) {
    for function in scalars() {
        context.register_udf(Arc::unwrap_or_clone(function));
    }
    for function in aggregates() {
        context.register_udaf(Arc::unwrap_or_clone(function));
    }
}
