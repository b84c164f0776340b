//! The JSON report against its published schema, docs/report-2.schema.json, by the few keywords that the schema uses.

use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::model::SCHEMA;
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{RenderOptions, render};
use serde_json::Value;

const TEXT: &str = include_str!("../../docs/report-2.schema.json");

/// Keywords that [`check`] understands; another one in the schema must not pass for checked.
const KNOWN: [&str; 12] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "oneOf",
];

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for key in schema.as_object().unwrap().keys() {
        assert!(KNOWN.contains(&key.as_str()) || key == "minItems" || key == "maxItems", "keyword {key}");
    }
    if let Some(name) = schema.get("$ref") {
        let name = name.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
        return check(root, &root["$defs"][name], value, at);
    }
    if let Some(choices) = schema.get("oneOf") {
        let results: Vec<_> = choices.as_array().unwrap().iter().map(|c| check(root, c, value, at)).collect();
        let fit = results.iter().filter(|r| r.is_ok()).count();
        return if fit == 1 { Ok(()) } else { Err(format!("{at}: {fit} of the choices fit: {results:?}")) };
    }
    if let Some(allowed) = schema.get("enum")
        && !allowed.as_array().unwrap().contains(value)
    {
        return Err(format!("{at}: {value} is not one of {allowed}"));
    }
    if let Some(kinds) = schema.get("type") {
        let kinds: Vec<&str> = kinds
            .as_array()
            .map_or_else(|| vec![kinds.as_str().unwrap()], |k| k.iter().map(|k| k.as_str().unwrap()).collect());
        let fits = kinds.iter().any(|k| match *k {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("type {other}"),
        });
        if !fits {
            return Err(format!("{at}: {value} is no {kinds:?}"));
        }
    }
    if let (Some(object), Some(properties)) = (value.as_object(), schema.get("properties")) {
        for name in schema["required"].as_array().unwrap() {
            if !object.contains_key(name.as_str().unwrap()) {
                return Err(format!("{at}: {name} is missing"));
            }
        }
        for (name, member) in object {
            let Some(part) = properties.get(name) else { return Err(format!("{at}: {name} is not in the schema")) };
            check(root, part, member, &format!("{at}.{name}"))?;
        }
    }
    if let (Some(items), Some(part)) = (value.as_array(), schema.get("items")) {
        let few = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
        let many = schema.get("maxItems").and_then(Value::as_u64).map_or(usize::MAX, |m| m as usize);
        if items.len() < few || items.len() > many {
            return Err(format!("{at}: {} items", items.len()));
        }
        for (i, item) in items.iter().enumerate() {
            check(root, part, item, &format!("{at}[{i}]"))?;
        }
    }
    Ok(())
}

#[test]
fn the_report_is_what_the_schema_says() {
    let schema: Value = serde_json::from_str(TEXT).unwrap();
    assert_eq!(schema["properties"]["schema"]["enum"][0], SCHEMA, "a new shape needs a new document");
    for spec in
        [Spec { seeds: 2, lost_cells: true, ..Spec::default() }, Spec { last_unfinished: true, ..Spec::default() }]
    {
        let dir = tempfile::tempdir().unwrap();
        let written = write_results(dir.path(), &spec).unwrap();
        let report = analyse(&written.out, &Options::default()).unwrap();
        let text = render(&report, "json", &RenderOptions::default()).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        check(&schema, &schema, &document, "report").unwrap();
        let mut wrong = document.clone();
        wrong["verdict"][0]["level"] = "loud".into();
        assert!(check(&schema, &schema, &wrong, "report").is_err());
        let mut more = document;
        more["traces"][0]["sections"][0]["blocks"][0]["surprise"] = true.into();
        assert!(check(&schema, &schema, &more, "report").is_err());
    }
}
