//! YAML with the lines that things stand on.
//!
//! Plain words mean what they mean to kubectl, which reads YAML 1.1: an `off` without quotes is a boolean, and no
//! annotation's value.

use std::{borrow::Cow, collections::HashMap};

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

/// A place in a text, both from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Why a text can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Where.
    pub place: Place,
    /// Why.
    pub message: String,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub content: Content,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// An object; a key that stands twice counts as the last one.
    Map(Vec<(String, Node)>),
    /// An array.
    List(Vec<Node>),
    /// Anything else.
    Scalar(Value),
}

impl Node {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => entries.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node),
            Content::List(_) | Content::Scalar(_) => None,
        }
    }

    /// The elements; none if it is no array.
    #[must_use]
    pub fn elements(&self) -> &[Self] {
        if let Content::List(elements) = &self.content { elements } else { &[] }
    }

    /// The text; none if it is none.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Content::Scalar(Value::String(text)) = &self.content { Some(text) } else { None }
    }

    /// The same without places.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Map(entries) => {
                let entries = entries.iter().map(|(name, node)| (name.clone(), node.value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
            Content::List(elements) => elements.iter().map(Self::value).collect(),
            Content::Scalar(value) => value.clone(),
        }
    }
}

/// More than any manifest has; aliases of aliases can make any number.
const MOST_NODES: usize = 2_000_000;
/// Deeper than any manifest is.
const MOST_DEEP: usize = 128;

/// The documents of a text. Those before a broken one are given too.
#[must_use]
pub fn documents(text: &str) -> (Vec<Node>, Option<Unreadable>) {
    let mut reader = Reader { parser: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0 };
    let mut documents = Vec::new();
    loop {
        match reader.document() {
            Ok(Some(document)) => documents.push(document),
            Ok(None) => return (documents, None),
            Err(unreadable) => return (documents, Some(unreadable)),
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    /// The next event that is no comment; none at the end.
    fn event(&mut self) -> Result<Option<(Event<'a>, Span)>, Unreadable> {
        loop {
            return match self.parser.next() {
                None => Ok(None),
                Some(Err(error)) => {
                    let message = error.kind().to_string();
                    Err(Unreadable { place: place(*error.marker()), message })
                }
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => continue,
                Some(Ok(event)) => Ok(Some(event)),
            };
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Unreadable> {
        while let Some((event, span)) = self.event()? {
            match event {
                Event::DocumentStart(..) => self.anchors.clear(),
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(None),
                event => return self.node(event, span, 0).map(Some),
            }
        }
        Ok(None)
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Unreadable> {
        let place = place(span.start);
        let unfit = |message: &str| Unreadable { place, message: message.to_owned() };
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err(unfit("more than a manifest can have"));
        }
        if depth > MOST_DEEP {
            return Err(unfit("nested too deep"));
        }
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                (
                    Content::Scalar(if plain { resolve(text) } else { Value::String(text.into_owned()) }),
                    anchor,
                )
            }
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).ok_or_else(|| unfit("an alias of nothing"))?;
                self.nodes += size(node);
                return Ok(Node { place, content: node.content.clone() });
            }
            _ => return Err(unfit("not a value")),
        };
        let node = Node { place, content };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Content, Unreadable> {
        let mut elements = Vec::new();
        while let Some((event, span)) = self.event()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            elements.push(self.node(event, span, depth + 1)?);
        }
        Ok(Content::List(elements))
    }

    fn map(&mut self, depth: usize) -> Result<Content, Unreadable> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut merged: Vec<(String, Node)> = Vec::new();
        while let Some((event, span)) = self.event()? {
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, ..) => text.into_owned(),
                _ => {
                    return Err(Unreadable {
                        place: place(span.start),
                        message: "a key that isn't text".to_owned(),
                    });
                }
            };
            let Some((event, span)) = self.event()? else { break };
            let node = self.node(event, span, depth + 1)?;
            match (key.as_str(), node.content) {
                ("<<", Content::Map(others)) => merged.extend(others),
                ("<<", Content::List(maps)) => {
                    merged.extend(maps.into_iter().flat_map(|map| match map.content {
                        Content::Map(others) => others,
                        Content::List(_) | Content::Scalar(_) => Vec::new(),
                    }))
                }
                (_, content) => entries.push((key, Node { place: node.place, content })),
            }
        }
        // What stands in the map itself comes after, and so counts.
        merged.extend(entries);
        Ok(Content::Map(merged))
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.content {
        Content::Map(entries) => entries.iter().map(|(_, node)| size(node)).sum(),
        Content::List(elements) => elements.iter().map(size).sum(),
        Content::Scalar(_) => 0,
    }
}

fn place(marker: Marker) -> Place {
    Place { line: marker.line(), column: marker.col() + 1 }
}

/// What a plain word means, as Go's YAML library for Kubernetes has it.
fn resolve(text: Cow<'_, str>) -> Value {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Value::Bool(false)
        }
        word if looks_like_a_number(word) => {
            let whole = word.parse::<i64>().ok().map(Value::from);
            let real = || word.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number);
            whole.or_else(real).unwrap_or_else(|| Value::String(text.into_owned()))
        }
        _ => Value::String(text.into_owned()),
    }
}

fn looks_like_a_number(word: &str) -> bool {
    let digits = word.trim_start_matches(['-', '+']);
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        let (documents, error) = documents(text);
        assert_eq!(error, None);
        documents.iter().map(Node::value).collect()
    }

    #[test]
    fn documents_are_read_one_after_the_other() {
        assert_eq!(
            values("a: 1\n---\n# nothing\n---\nb: [x, 'on']\n"),
            [json!({"a": 1}), json!(null), json!({"b": ["x", "on"]})]
        );
        assert_eq!(values(""), Vec::<Value>::new());
        assert_eq!(values(r#"{"a": {"b": null}}"#), [json!({"a": {"b": null}})]);
    }

    #[rstest]
    #[case("off", json!(false))]
    #[case("'off'", json!("off"))]
    #[case("\"off\"", json!("off"))]
    #[case("true", json!(true))]
    #[case("30", json!(30))]
    #[case("30s", json!("30s"))]
    #[case("1.5", json!(1.5))]
    #[case("1.2.3", json!("1.2.3"))]
    #[case("!!str 30", json!("30"))]
    fn a_plain_word_means_what_it_means_to_kubectl(#[case] text: &str, #[case] value: Value) {
        assert_eq!(values(&format!("a: {text}")), [json!({"a": value})]);
    }

    #[test]
    fn aliases_and_merges_are_followed() {
        let text = "base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nsame: *b\n";
        assert_eq!(values(text)[0]["other"], json!({"x": 1, "y": 3}));
        assert_eq!(values(text)[0]["same"], json!({"x": 1, "y": 2}));
    }

    #[test]
    fn places_count_from_one() {
        let (documents, _) = documents("a: 1\n---\nkind: X\nspec:\n  containers:\n  - name: c\n");
        let second = &documents[1];
        assert_eq!(second.place, Place { line: 3, column: 1 });
        assert_eq!(
            second.get("spec").unwrap().get("containers").unwrap().elements()[0].place,
            Place { line: 6, column: 5 }
        );
    }

    #[test]
    fn bad_yaml_is_told_with_its_place_and_what_came_before_it() {
        let (documents, error) = documents("a: 1\n---\nb: [1, 2\nc: }\n");
        assert_eq!(documents.len(), 1);
        let error = error.unwrap();
        assert!(error.place.line >= 3 && error.place.column >= 1, "{error:?}");
        assert!(!error.message.is_empty());
    }

    #[test]
    fn aliases_of_aliases_have_an_end() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let before = format!("*a{}", n - 1);
            text += &format!("a{n}: &a{n} [{}]\n", [before.as_str(); 10].join(", "));
        }
        assert_eq!(documents(&text).1.unwrap().message, "more than a manifest can have");
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[a-c:\\-\\[\\]{}&*<>|'\"#\n \t!%?,.0-9]{0,60}") {
            let _ = documents(&text);
        }
    }
}
