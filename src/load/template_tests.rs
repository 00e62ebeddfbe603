//! Templates are filled in their places, and only there.

use super::*;
use serde_json::json;

fn filled(text: &str, encoding: Encoding, kept: Value) -> Result<String, Unsendable> {
    let mut compiler = Compiler::new(vec!["id".into()], Environment::default());
    let mut template = Template::default();
    compiler.text(&mut template, text, encoding).unwrap();
    fill(&template, compiler, kept)
}

fn filled_json(document: Value, kept: Value) -> Value {
    let mut compiler = Compiler::new(vec!["id".into()], Environment::default());
    let mut template = Template::default();
    compiler.json(&mut template, &document).unwrap();
    serde_json::from_str(&fill(&template, compiler, kept).unwrap()).unwrap()
}

fn fill(template: &Template, compiler: Compiler, kept: Value) -> Result<String, Unsendable> {
    let shared = compiler.finish();
    let scene = Scene {
        kept: &[(!kept.is_null()).then(|| Kept::new(kept))],
        client: 3,
        iteration: 14,
        shared: &shared,
    };
    let mut out = Vec::new();
    template.fill(&scene, &mut Draw::from_state(1), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn a_path_is_filled_with_encoded_values() {
    let path = "/x/{{ id }}?c={{client}}&i={{ iteration }}";
    let text = filled(path, Encoding::Path, json!("a/b c")).unwrap();
    assert_eq!(text, "/x/a%2Fb%20c?c=3&i=14");
    assert!(filled(path, Encoding::Path, Value::Null).is_err());
}

#[test]
fn a_leaf_that_is_one_template_keeps_its_type() {
    let document = json!({"a": "{{ id }}", "b": "no {{ id }}", "c": "{{ random_int(5, 5) }}",
        "d": ["{{ id + 1 }}", "{{ random_choice(['x']) }}", "{{ uuid() }}", 7, null]});
    let out = filled_json(document, json!(41));
    assert_eq!(out["a"], json!(41));
    assert_eq!(out["b"], json!("no 41"));
    assert_eq!(out["c"], json!(5));
    assert_eq!(out["d"][0], json!(42));
    assert_eq!(out["d"][1], json!("x"));
    assert_eq!(out["d"][2].as_str().unwrap().len(), 36);
    let hostile = filled_json(json!({"a": "<{{ id }}>"}), json!("\"}\n"));
    assert_eq!(hostile["a"], json!("<\"}\n>"));
}

#[test]
fn what_is_more_than_a_name_is_rendered_with_the_same_draw() {
    let text = filled(
        "{{ id | upper }}-{{ random_int(1, 9) + 0 }}",
        Encoding::Verbatim,
        json!("ab"),
    );
    let text = text.unwrap();
    assert!(text.starts_with("AB-"), "{text}");
    let again = filled(
        "{{ id | upper }}-{{ random_int(1, 9) + 0 }}",
        Encoding::Verbatim,
        json!("ab"),
    );
    assert_eq!(again.unwrap(), text);
    let braces = filled("{{ '}}' ~ id }}", Encoding::Verbatim, json!(1)).unwrap();
    assert_eq!(braces, "}}1");
    let block = filled(
        "{% if client == 3 %}yes{% endif %}",
        Encoding::Verbatim,
        json!(1),
    );
    assert_eq!(block.unwrap(), "yes");
}

#[test]
fn faults_are_found_when_compiling() {
    let mut compiler = Compiler::new(vec!["id".into()], Environment::default());
    let mut template = Template::default();
    for bad in [
        "{{ nothing }}",
        "{{ id",
        "{{ random_int(9, 1) }}",
        "{{ random_choice([]) }}",
        "{{ 1 + }}",
    ] {
        let fault = compiler.text(&mut template, bad, Encoding::Verbatim);
        assert!(fault.is_err(), "{bad}");
    }
    assert!(
        compiler
            .text(&mut template, "/{% if 1 %}x{% endif %}", Encoding::Path)
            .is_err()
    );
}
