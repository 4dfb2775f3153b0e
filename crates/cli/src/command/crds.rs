//! `convoy crds`: prints the custom resource definitions.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::Value;

use super::DialectName;
use crate::output;

/// Print the CustomResourceDefinitions of the dialects as YAML
///
/// To install them: convoy crds | kubectl apply --server-side -f -
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print only the definitions of this dialect. Can be repeated
    #[arg(long, value_name = "DIALECT", value_delimiter = ',')]
    dialect: Vec<DialectName>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Args { dialect } = args;
    let dialects = match dialect.as_slice() {
        [] => DialectName::value_variants(),
        some => some,
    };
    for dialect in dialects {
        output::print(&documents(*dialect)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The CRDs of one dialect, each a document of its own.
fn documents(dialect: DialectName) -> Result<String> {
    let mut documents = String::new();
    for crd in convoy_api::schema::crds(dialect.word()).unwrap_or_default() {
        let mut crd = serde_json::to_value(crd).context("could not write a CRD")?;
        whole_numbers(&mut crd);
        documents.push_str("---\n");
        documents.push_str(&serde_saphyr::to_string(&crd).context("could not write YAML")?);
    }
    Ok(documents)
}

/// Bounds are floats in the type; writes them as integers (`minimum: 1`) where they are whole.
fn whole_numbers(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53, to where every whole float is an integer
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|size| size.fract() == 0.0 && size.abs() < EXACT);
            #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
            if let Some(whole) = whole.filter(|_| number.is_f64()) {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
