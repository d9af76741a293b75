//! `time_bucket(width, moment)`: the beginning of the bucket that a moment is in, counted from 1970.
//!
//! The width is an interval or nanoseconds, the moment a timestamp or nanoseconds. The planner rewrites it
//! to DataFusion's own `date_bin`, so a cluster that does not know this function runs it all the same.

use datafusion::arrow::array::types::IntervalMonthDayNano;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::functions::datetime::date_bin;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility, cast,
};

const NANOSECONDS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);
const WIDTH: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeBucket {
    signature: Signature,
}

impl TimeBucket {
    pub(crate) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &'static str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [width, moment] = types else {
            return plan_err!(
                "time_bucket takes a width and a moment, not {} arguments",
                types.len()
            );
        };
        let width = match width {
            DataType::Interval(_) | DataType::Duration(_) => WIDTH,
            text if text.is_string() => WIDTH,
            whole if whole.is_integer() => DataType::Int64,
            other => return plan_err!("time_bucket takes no width of type {other}"),
        };
        let moment = match moment {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
            DataType::Date32 | DataType::Date64 => NANOSECONDS,
            whole if whole.is_integer() => DataType::Int64,
            other => return plan_err!("time_bucket takes no moment of type {other}"),
        };
        Ok(vec![width, moment])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[1].clone())
    }

    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Expr::Literal(width, _) = &args[0] else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let width = Expr::Literal(interval(width)?, None);
        let moment = args.swap_remove(1);
        let bin =
            |moment| Expr::ScalarFunction(ScalarFunction::new_udf(date_bin(), vec![width, moment]));
        Ok(ExprSimplifyResult::Simplified(match info.get_data_type(&moment)? {
            DataType::Int64 => cast(bin(cast(moment, NANOSECONDS)), DataType::Int64),
            _ => bin(moment),
        }))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ColumnarValue::Scalar(width) = &args.args[0] else {
            return exec_err!("the width of a time_bucket is not the same for all rows");
        };
        args.args[0] = ColumnarValue::Scalar(interval(width)?);
        args.arg_fields[0] = Field::new("width", WIDTH, true).into();
        let moment = args.args[1].data_type();
        if moment == DataType::Int64 {
            args.args[1] = args.args[1].cast_to(&NANOSECONDS, None)?;
            args.arg_fields[1] = Field::new("moment", NANOSECONDS, true).into();
            args.return_field = Field::new("bucket", NANOSECONDS, true).into();
        }
        date_bin().invoke_with_args(args)?.cast_to(&moment, None)
    }
}

/// A width as the interval that `date_bin` takes.
fn interval(width: &ScalarValue) -> Result<ScalarValue> {
    match width {
        ScalarValue::Int64(Some(ns)) if *ns > 0 => {
            let interval = IntervalMonthDayNano::new(0, 0, *ns);
            Ok(ScalarValue::IntervalMonthDayNano(Some(interval)))
        }
        ScalarValue::Int64(Some(ns)) => plan_err!("a time_bucket of {ns} ns is not longer than 0"),
        other if other.is_null() => Ok(ScalarValue::IntervalMonthDayNano(None)),
        other => other.cast_to(&WIDTH),
    }
}
