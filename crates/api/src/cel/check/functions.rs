//! The functions that expressions know, with what they take and give.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::{Found, Type};

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// Whether the first argument is the target.
    pub(super) is_member: bool,
    pub(super) takes: Vec<Type>,
    pub(super) gives: Type,
    /// How many types it leaves open, numbered from zero.
    open: usize,
}

/// The ways to call a function; none: nobody knows it.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    static ALL: LazyLock<BTreeMap<&'static str, Vec<Overload>>> =
        LazyLock::new(|| read(include_str!("functions.txt")));
    ALL.get(name).map(Vec::as_slice)
}

impl Overload {
    /// What it takes and gives, with its open types as new ones.
    pub(super) fn opened(&self, found: &mut Found) -> (Vec<Type>, Type) {
        let fresh: Vec<Type> = (0..self.open).map(|_| found.fresh()).collect();
        let takes = self.takes.iter().map(|some| some.with(&fresh)).collect();
        (takes, self.gives.with(&fresh))
    }
}

impl Type {
    /// The same with its numbered types replaced.
    fn with(&self, fresh: &[Self]) -> Self {
        match self {
            Self::Variable(number) => fresh[*number].clone(),
            other => other.mapped(&|part| part.with(fresh)),
        }
    }
}

fn read(text: &'static str) -> BTreeMap<&'static str, Vec<Overload>> {
    let mut all: BTreeMap<&str, Vec<Overload>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (names, rest) = line.split_once(' ').expect("a line has a name and a signature");
        for name in names.split('|') {
            all.entry(name).or_default().push(Reader { rest, letters: Vec::new() }.overload());
        }
    }
    all
}

/// Reads a signature from left to right.
struct Reader {
    rest: &'static str,
    /// Those that stand for open types, in their order.
    letters: Vec<&'static str>,
}

impl Reader {
    fn overload(mut self) -> Overload {
        let mut takes = Vec::new();
        let is_member = !self.rest.starts_with('(');
        if is_member {
            takes.push(self.one());
            assert!(self.eat("."), "a target is followed by a dot: {}", self.rest);
        }
        takes.extend(self.list());
        let gives = self.one();
        Overload { is_member, takes, gives, open: self.letters.len() }
    }

    /// Types in parentheses.
    fn list(&mut self) -> Vec<Type> {
        assert!(self.eat("("), "types are in parentheses: {}", self.rest);
        let mut types = Vec::new();
        while !self.eat(")") {
            types.push(self.one());
            self.eat(",");
        }
        types
    }

    fn one(&mut self) -> Type {
        self.rest = self.rest.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        // The dot before the arguments is not part of the target's name.
        let (name, rest) = match name.strip_suffix('.') {
            Some(name) => (name, &self.rest[end - 1..]),
            None => (name, rest),
        };
        self.rest = rest;
        match name {
            "list" | "map" | "pair" | "optional_type" | "type" => self.compound(name),
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            letter if letter.len() == 1 => Type::Variable(self.letter(letter)),
            native => Type::Native(native),
        }
    }

    fn compound(&mut self, name: &str) -> Type {
        let mut parts = self.list();
        let last = Box::new(parts.pop().expect("it is made of something"));
        match (name, parts.pop()) {
            ("list", None) => Type::List(last),
            ("optional_type", None) => Type::Optional(last),
            ("type", None) => Type::Meta(last),
            ("map", Some(key)) => Type::Map(Box::new((key, *last))),
            ("pair", Some(first)) => Type::Pair(Box::new((first, *last))),
            (name, _) => unreachable!("{name} is made of another number of types"),
        }
    }

    fn letter(&mut self, letter: &'static str) -> usize {
        let known = self.letters.iter().position(|known| *known == letter);
        known.unwrap_or_else(|| {
            self.letters.push(letter);
            self.letters.len() - 1
        })
    }

    fn eat(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let shown = |name: &str| -> Vec<String> {
            let all = overloads(name).unwrap().iter();
            all.map(|one| format!("{}{:?} {}", one.is_member, one.takes, one.gives)).collect()
        };
        assert_eq!(shown("ip"), ["false[String] net.IP", "true[Native(\"net.CIDR\")] net.IP"]);
        assert_eq!(shown("sets.contains"), ["false[List(Variable(0)), List(Variable(0))] bool"]);
        assert_eq!(
            shown("getQuery"),
            ["true[Native(\"kubernetes.URL\")] map(string, list(string))"]
        );
        assert_eq!(shown("optional.none"), ["false[] optional_type(_var0)"]);
        assert_eq!(shown("_<_").len(), 14);
        assert!(overloads("nothing").is_none());
    }
}
