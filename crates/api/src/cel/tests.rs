//! What expressions answer, and that hostile ones end.

use serde_json::json;

use super::*;

fn scope() -> Scope {
    let cluster = json!({
        "metadata": {"labels": {"env": "prod", "tier": "1"}},
        "spec": {"replicas": 3, "ports": [80, 443], "names": ["b", "a"], "ratio": 0.5},
    });
    Scope::new().variable("self", &cluster)
}

#[test]
fn expressions_answer_as_in_kubernetes() {
    let cases = [
        ("type(self.spec.replicas) == int", json!(true)),
        ("self.spec.replicas * 2", json!(6)),
        ("self.spec.ratio < 1.0", json!(true)),
        ("has(self.spec.missing)", json!(false)),
        ("self.spec.?missing.orValue(7)", json!(7)),
        ("self.metadata.labels.all(k, k.size() >= 3)", json!(true)),
        (
            "self.metadata.labels.map(k, k + '=' + self.metadata.labels[k])",
            json!(["env=prod", "tier=1"]),
        ),
        ("{'b': 1, 'a': 2}.map(k, k)", json!(["a", "b"])),
        ("self.spec.ports == [80, 443]", json!(true)),
        ("[80, 443] == self.spec.ports", json!(true)),
        ("[[80, 443]] == [self.spec.ports]", json!(true)),
        ("443 in self.spec.ports && !(1 in self.spec.ports)", json!(true)),
        ("self.spec.ports in [[80, 443]]", json!(true)),
        ("self.spec.ports + [1]", json!([80, 443, 1])),
        ("[1] + self.spec.ports", json!([1, 80, 443])),
        ("self.spec.ports.exists_one(p, p > 100)", json!(true)),
        ("self.spec.ports.filter(p, p > 100).map(p, p + 1)", json!([444])),
        ("'abc'.find('[b-c]+') + 'x1y22'.findAll('[0-9]+').join('-')", json!("bc1-22")),
        ("'x1y22'.findAll('[0-9]+', 1)", json!(["1"])),
        ("'abc'.matches('^a.c$') && matches('abc', 'b')", json!(true)),
        ("'a,b'.split(',').size() == 2 && 'AB'.lowerAscii() == 'ab'", json!(true)),
        ("'aXbX'.replace('X', '--') + 'aXbX'.replace('X', '', 1)", json!("a--b--abX")),
        ("'%s is %d'.format(['x', 3])", json!("x is 3")),
        ("[1, 2, 2].isSorted() && !self.spec.names.isSorted()", json!(true)),
        ("self.spec.ports.sum() + self.spec.ports.max() - self.spec.ports.min()", json!(886)),
        ("['a', 'b', 'a'].indexOf('b') + ['a', 'b', 'a'].lastIndexOf('a')", json!(3)),
        (
            "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
            json!(true),
        ),
        ("cel.bind(x, self.spec.replicas, x * x)", json!(9)),
        ("lists.range(3)", json!([0, 1, 2])),
        (
            "duration('90m') > duration('1h') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
            json!(true),
        ),
        ("timestamp('2026-01-01T00:00:00Z') + duration('1h')", json!("2026-01-01T01:00:00Z")),
        ("self.spec.replicas > 2 ? 'many' : 'few'", json!("many")),
        ("false && self.nothing.here || true", json!(true)),
    ];
    for (source, want) in cases {
        let answer = Program::compile(source).unwrap().evaluate(&scope());
        assert_eq!(answer, Ok(want), "{source}");
    }
}

/// Each of these holds on a real API server, where it is a rule of its own.
#[test]
fn kubernetes_own_functions_answer() {
    let cases = [
        "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')",
        "quantity('200M').compareTo(quantity('0.2G')) == 0 && quantity('1Gi').isGreaterThan(quantity('1G'))",
        "isQuantity('1.3Gi') && !isQuantity('200K') && quantity('50k').asInteger() == 50000",
        "quantity('-1').sign() == -1 && !quantity('100m').isInteger() && quantity('500m').asApproximateFloat() == 0.5",
        "ip('127.0.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('::ffff:1.2.3.4')",
        "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
        "ip('169.254.0.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('::/0').prefixLength() == 0 && !isCIDR('10.0.0.0/33')",
        "string(ip('10.0.0.1')) == '10.0.0.1' && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
        "url('https://u@a.example:80/x%20y?q=1&q=2#z').getHost() == 'a.example:80'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
        "url('/p?a=b%20c').getQuery() == {'a': ['b c']} && url('/p/q').getEscapedPath() == '/p/q' && !isURL('a b')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1.2', true).minor() == 2 && !isSemver('v1.0')",
        "semver('1.0.0-alpha').compareTo(semver('1.0.0')) == -1",
        "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('My').hasValue()",
        "format.named('uuid').hasValue() && !format.named('nope').hasValue()",
        "format.dns1123LabelPrefix().validate('my-') == optional.none()",
        "{'a': 1, 'b': 2}.all(k, v, k != '' && v > 0) && [5, 6].exists(i, v, i == 1 && v == 6)",
        "[1, 2, 3].exists_one(i, v, i == v) == false && ['x', 'y'].transformList(i, v, v + string(i)) == ['x0', 'y1']",
        "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10) == {'b': 20}",
        "['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}",
        "[3, 1, 2].sort() == [1, 2, 3] && [[1], [2]].flatten() == [1, 2] && [1, 1].distinct() == [1]",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [1, 2].reverse() == [2, 1] && ['bb', 'a'].sortBy(e, e.size()) == ['a', 'bb']",
        "optional.of(1).optMap(x, x + 1).orValue(0) == 2 && [1, 2][?5].orValue(9) == 9",
        "'hello'.charAt(1) == 'e' && 'hello'.substring(1, 3) == 'el' && 'a b'.split(' ', 1) == ['a b'] && ' x '.trim() == 'x'",
        "strings.quote('a\\n') == '\"a\\\\n\"' && '%s %d %.2f %x'.format(['a', 2, 1.5, 255]) == 'a 2 1.50 ff'",
        "int('42') == 42 && double('1.5') == 1.5 && string(1) == '1' && bool('true') && uint(3) == 3u && type(1u) == uint",
        "1 == 1.0 && 1 < 1.5 && dyn(1) != 'a' && b'abc'.size() == 3 && 7 / 2 == 3 && -7 % 2 == -1",
    ];
    for source in cases {
        let answer = Program::compile(source).unwrap().evaluate(&Scope::new());
        assert_eq!(answer, Ok(json!(true)), "{source}");
    }
}

#[test]
fn errors_are_worded_as_in_kubernetes() {
    let cases = [
        ("self.missing", "no such key: missing"),
        ("self.spec.ports[7]", "index out of bounds: 7"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("self.spec.replicas + 'a'", "no such overload"),
        ("nothing", "undeclared reference to 'nothing'"),
        ("[].min()", "min called on empty list"),
    ];
    for (source, want) in cases {
        let answer = Program::compile(source).unwrap().evaluate(&scope());
        assert_eq!(answer, Err(EvaluateError::Failed(want.to_owned())), "{source}");
    }
    let number = Program::compile("1").unwrap().test(&scope());
    assert_eq!(number, Err(EvaluateError::NotBoolean("int".to_owned())));
}

#[test]
fn functions_of_the_caller_are_methods_too() {
    let scope = scope()
        .function("scores", |arguments| match arguments {
            [cluster, Value::String(name)] => {
                Ok(json!({"cpu": [cluster["spec"]["replicas"].clone(), name.len()]}))
            }
            _ => Err("want a cluster and a name".to_owned()),
        })
        .function("parseJSON", |arguments| match arguments {
            [Value::String(text)] => serde_json::from_str(text).map_err(|error| error.to_string()),
            _ => Err("want a string".to_owned()),
        });
    let cases = [
        ("self.scores('abc').cpu[0] == 3 && self.scores('abc').cpu[1] == 3", json!(true)),
        ("'{\"a\": [1]}'.parseJSON().a[0] + parseJSON('2')", json!(3)),
    ];
    for (source, want) in cases {
        assert_eq!(Program::compile(source).unwrap().evaluate(&scope), Ok(want), "{source}");
    }
    let wrong = Program::compile("self.scores(1)").unwrap().evaluate(&scope);
    assert_eq!(wrong, Err(EvaluateError::Failed("want a cluster and a name".to_owned())));
}

#[test]
fn what_costs_too_much_is_stopped() {
    let list = format!("[{}]", vec!["1"; 100].join(","));
    let nested = format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, a == d))))");
    let doubling = format!("['x']{}", ".map(a, a + a)".repeat(60));
    let copying = format!("[['x']]{}", ".map(a, [a, a, a, a, a, a])".repeat(60));
    let squaring =
        format!("'{}'{}", "x".repeat(100), ".replace('', 'yyyyyyyyyyyyyyyyyyyy')".repeat(30));
    let numbers = "lists.range(1000000000).size() == 1".to_owned();
    let hidden = format!("({nested}) || true");
    for source in [nested, doubling, copying, squaring, numbers, hidden] {
        let started = std::time::Instant::now();
        let answer = Program::compile(&source).unwrap().evaluate(&Scope::new().budget(1_000_000));
        assert_eq!(answer, Err(EvaluateError::OverBudget), "{}", &source[..60]);
        assert!(started.elapsed().as_secs() < 20, "{}", &source[..60]);
    }
}

#[test]
fn what_nests_too_deep_is_refused() {
    let sources = [
        format!("{}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}1{}", "[".repeat(5000), "]".repeat(5000)),
        "1 + ".repeat(4000) + "1",
        "-".repeat(4000) + "1",
        "!".repeat(16000) + "true",
        "a".to_owned() + &".b".repeat(8000),
        "true ? 1 : ".repeat(1400) + "2",
        "'x'".to_owned() + &".trim()".repeat(2000),
        "x".repeat(20_000),
    ];
    for source in sources {
        // Either refused, or (signs in pairs cancel out) understood and answered.
        if let Ok(program) = Program::compile(&source) {
            assert!(source.starts_with(['-', '!']), "{}", &source[..40]);
            assert!(program.evaluate(&Scope::new()).is_ok(), "{}", &source[..40]);
        }
    }
    let long = "self.spec.replicas == 3 && ".repeat(300) + "true";
    assert_eq!(Program::compile(&long).unwrap().test(&scope()), Ok(true));
}
