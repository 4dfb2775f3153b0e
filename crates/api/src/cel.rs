//! The Common Expression Language as Kubernetes speaks it: CRD rules, cluster selectors.
//!
//! This is the one place that knows the `cel` crate. Variables go in as JSON, answers come
//! out as JSON, and whatever an expression does it ends: [`Program::compile`] bounds its length
//! and nesting, evaluation is bounded by a budget.
//!
//! ```
//! use convoy_api::cel::{Program, Scope};
//! use serde_json::json;
//!
//! let rule = Program::compile("self.replicas <= 10 && self.name.startsWith('web')").unwrap();
//! let scope = Scope::new().variable("self", &json!({"replicas": 3, "name": "web-1"}));
//! assert_eq!(rule.test(&scope), Ok(true));
//! ```

mod budget;
mod check;
mod construct;
mod free;
mod instrument;
mod library;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::common::ast::SourceInfo;
use cel::common::types::CelBool;
use cel::common::value::{CowVal, Val};
use cel::{Context, ExecutionError, IdedExpr};
use serde_json::Value;

pub use budget::BUDGET;
pub use check::{Declared, Object, Type};
pub use construct::plain;
use library::value::json;
pub use library::value::{Identity, RESERVED, SharedList, SharedMap, from_json};

/// `text` as one of the types that CEL makes from strings: `timestamp`, `duration` or
/// `base64.decode`.
pub fn converted(function: &str, text: &str) -> Option<Box<dyn Val>> {
    let arguments = vec![CowVal::owned(cel::common::types::CelString::from(text.to_owned()))];
    let convert = library::environment().find_overload(function, &arguments)?;
    Some(convert(arguments).ok()?.into_owned())
}

/// Longer expressions are refused unread.
pub const LENGTH_MAX: usize = 16 * 1024;

/// How deep calls may nest.
pub const DEPTH_MAX: usize = 128;

/// The parser uses the stack in proportion to the operators it sees; up to this many, the
/// caller's stack is enough.
const OPERATORS_MAX: usize = 48;

/// What the parser gets instead where there are more. Memory is committed as it is used.
const PARSER_STACK: usize = 512 * 1024 * 1024;

/// A function that an expression may call by name or as a method, where the target comes first.
type Function = Arc<dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync>;

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Program {
    source: Arc<str>,
    expression: Arc<IdedExpr>,
    /// Sorted.
    free: Arc<[String]>,
}

/// What an expression can see.
#[derive(Clone, Default)]
pub struct Scope {
    variables: Vec<(String, Box<dyn Val>)>,
    functions: Vec<(String, Function)>,
    budget: Option<u64>,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("expression is {length} bytes long, at most {LENGTH_MAX} are allowed")]
    TooLong { length: usize },
    #[error("expression nests {depth} calls deep, at most {DEPTH_MAX} are allowed")]
    TooDeep { depth: usize },
    #[error("{0}")]
    Syntax(String),
    /// It can be read, and makes no sense.
    #[error("{0}")]
    Types(String),
}

/// The type that an expression has when the declared variables have theirs.
pub fn type_of(source: &str, declared: &Declared) -> Result<Type, CompileError> {
    let (expression, info) = parsed(source)?;
    check::check(&expression, info, declared).map_err(CompileError::Types)
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    #[error("{0}")]
    Failed(String),
    #[error("operation cancelled: actual cost limit exceeded")]
    OverBudget,
    #[error("want a boolean, got {0}")]
    NotBoolean(String),
}

impl Program {
    pub fn compile(source: &str) -> Result<Self, CompileError> {
        let (mut expression, _) = parsed(source)?;
        instrument::instrument(&mut expression);
        let free = free::variables(&expression).into_iter().map(str::to_owned).collect();
        Ok(Self { source: source.into(), expression: Arc::new(expression), free })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression reads a variable of this name.
    pub fn mentions(&self, variable: &str) -> bool {
        self.free.iter().any(|name| name == variable)
    }

    /// The variables that the expression expects to find, by name.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.free.iter().map(String::as_str)
    }

    /// The value of the expression, as JSON.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, EvaluateError> {
        self.run(scope, scope.budget.unwrap_or(BUDGET), json::from_val).0
    }

    /// The value of an expression that has to be a boolean.
    pub fn test(&self, scope: &Scope) -> Result<bool, EvaluateError> {
        self.test_within(scope, scope.budget.unwrap_or(BUDGET)).0
    }

    /// [`Program::test`] for at most `budget` units, and how many are left of them; none if they
    /// did not suffice.
    pub fn test_within(
        &self,
        scope: &Scope,
        budget: u64,
    ) -> (Result<bool, EvaluateError>, Option<u64>) {
        let read = |answer: &dyn Val| match answer.downcast_ref::<CelBool>() {
            Some(answer) => Ok(*answer.inner()),
            None => Err(EvaluateError::NotBoolean(answer.get_type().name().to_owned())),
        };
        let (answer, left) = self.run(scope, budget, read);
        (answer.and_then(|answer| answer), left)
    }

    fn run<T>(
        &self,
        scope: &Scope,
        budget: u64,
        read: impl FnOnce(&dyn Val) -> T,
    ) -> (Result<T, EvaluateError>, Option<u64>) {
        let context = scope.context();
        let evaluate = || {
            cel::Value::resolve_val(&self.expression, &context)
                .map(|answer| read(answer.as_ref()))
                .map_err(|error| EvaluateError::Failed(wording(&error)))
        };
        // The interpreter has a few panics left for trees that no parser makes.
        let guarded = || catch_unwind(AssertUnwindSafe(evaluate));
        let (result, left) = budget::limited(budget, guarded);
        let answer = match (left, result) {
            (None, _) => Err(EvaluateError::OverBudget),
            (_, Ok(result)) => result,
            (_, Err(_)) => Err(EvaluateError::Failed("internal error".to_owned())),
        };
        (answer, left)
    }
}

impl Scope {
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds `name` to JSON; integers become `int`.
    #[must_use]
    pub fn variable(self, name: &str, value: &Value) -> Self {
        self.bound(name, from_json(value))
    }

    /// Binds `name` to a CEL value, e.g. one whose types come from a schema.
    #[must_use]
    pub fn bound(mut self, name: &str, value: Box<dyn Val>) -> Self {
        self.variables.push((name.to_owned(), value));
        self
    }

    /// Adds a function, which also answers to `target.name(…)` with the target as its first
    /// argument. Its error text becomes the error of the evaluation.
    #[must_use]
    pub fn function(
        mut self,
        name: &str,
        function: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        self.functions.push((name.to_owned(), Arc::new(function)));
        self
    }

    /// Allows another amount of work than [`BUDGET`].
    #[must_use]
    pub fn budget(mut self, units: u64) -> Self {
        self.budget = Some(units);
        self
    }

    fn context(&self) -> Context<'static, 'static> {
        let mut context = Context::with_env(library::environment().clone());
        for (name, value) in &self.variables {
            context.add_variable_as_val(name.as_str(), value.clone());
        }
        for (name, function) in &self.functions {
            let adapter = adapter(function.clone());
            // A name that the library has already stays the library's.
            let _ = context.add_function(name, adapter);
        }
        context
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let functions: Vec<_> = self.functions.iter().map(|(name, _)| name).collect();
        f.debug_struct("Scope")
            .field("variables", &self.variables)
            .field("functions", &functions)
            .field("budget", &self.budget)
            .finish()
    }
}

type Adapter = Box<
    dyn for<'c, 'v> Fn(&mut cel::FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError>
        + Send
        + Sync,
>;

fn adapter(function: Function) -> Adapter {
    Box::new(move |call| {
        let arguments: Vec<Value> = call
            .this
            .iter()
            .chain(&call.args)
            .map(|argument| json::from_val(argument.as_ref()))
            .collect();
        match function(&arguments) {
            Ok(answer) => Ok(CowVal::Owned(from_json(&answer))),
            Err(message) => Err(ExecutionError::function_error(call.name, message)),
        }
    })
}

fn parsed(source: &str) -> Result<(IdedExpr, SourceInfo), CompileError> {
    match source.len() {
        length if length > LENGTH_MAX => Err(CompileError::TooLong { length }),
        _ if operators_in(source) <= OPERATORS_MAX => parse(source),
        _ => parse_aside(source),
    }
}

fn parse(source: &str) -> Result<(IdedExpr, SourceInfo), CompileError> {
    let parser = || library::environment().parser().parse_with_source_info(source);
    let (expression, info) = match catch_unwind(parser) {
        Ok(Ok(parsed)) => parsed,
        // Compilers of Kubernetes indent what they quote.
        Ok(Err(errors)) => {
            let errors = errors.to_string().replace("\n| ", "\n | ");
            return Err(CompileError::Syntax(errors));
        }
        Err(_) => return Err(CompileError::Syntax("the parser gave up".to_owned())),
    };
    let depth = instrument::depth(&expression);
    if depth > DEPTH_MAX {
        return Err(CompileError::TooDeep { depth });
    }
    Ok((expression, info))
}

fn parse_aside(source: &str) -> Result<(IdedExpr, SourceInfo), CompileError> {
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(PARSER_STACK);
        let parsed = match parser.spawn_scoped(scope, || parse(source)) {
            Ok(thread) => thread.join().ok(),
            Err(_) => None,
        };
        parsed.unwrap_or_else(|| Err(CompileError::Syntax("the parser gave up".to_owned())))
    })
}

fn operators_in(source: &str) -> usize {
    source.bytes().filter(|byte| b"+-*/%.[({?!&|<>=:".contains(byte)).count()
}

/// An error in the words of Kubernetes' interpreter.
fn wording(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(..) => "no such overload".to_owned(),
        ExecutionError::IndexOutOfBounds(index) => {
            let index = Box::<dyn Val>::try_from(index.clone());
            format!(
                "index out of bounds: {}",
                index.map_or_else(|_| "?".to_owned(), |index| json::text_of(index.as_ref()))
            )
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        ExecutionError::FunctionError { function, message } => match function.as_str() {
            "int" | "uint" | "double" | "bool" if message.starts_with("string parse error") => {
                format!("type conversion error from 'string' to '{function}'")
            }
            _ => message.clone(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
