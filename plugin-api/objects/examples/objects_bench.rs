//! Measures what the object environment costs with few and with many objects, and prints one line
//! of JSON. `cargo xtask bench objects` builds and runs it.
#![allow(clippy::print_stdout)]

use std::error::Error as AnyError;
use std::hint::black_box;
use std::time::Instant;

use jaato_objects::{Addition, Filter, Object, ObjectEnvironment};
use serde_json::{Map, Value, json};

/// Objects of the small environment and of the large one.
const FEW: usize = 1_000;
const MANY: usize = 100_000;

/// Objects of an item: as many as a filter finds.
const MATCHES: usize = 10;

/// Times that each thing is done; the figure is the median.
const TIMES: usize = 501;

const TOOL: &str = "search";

fn main() -> Result<(), Box<dyn AnyError>> {
    let (mut few, mut many) = (filled(FEW)?, filled(MANY)?);
    // In turns, so that what the machine does besides hits both.
    let (mut adds_few, mut adds_many) = (Vec::new(), Vec::new());
    let (mut saves_few, mut saves_many) = (Vec::new(), Vec::new());
    for time in 0..TIMES {
        let (add, save) = add_and_save(&mut few, time % (FEW / MATCHES), FEW + time)?;
        adds_few.push(add);
        saves_few.push(save);
        let (add, save) = add_and_save(&mut many, time * 17 % (MANY / MATCHES), MANY + time)?;
        adds_many.push(add);
        saves_many.push(save);
    }
    let fresh = filled(MANY)?;
    let by_key = (0..TIMES).map(|time| get(&fresh, time * 19 % (MANY / MATCHES)));
    let begun = Instant::now();
    black_box(fresh.save());
    let save_all_us = us(begun);
    let line = json!({
        "get_us": median(by_key.collect::<Result<_, _>>()?),
        "add_few_us": median(adds_few),
        "add_many_us": median(adds_many),
        "save_few_us": median(saves_few),
        "save_many_us": median(saves_many),
        "save_all_us": save_all_us,
    });
    println!("{line}");
    Ok(())
}

/// An environment with so many objects, ten to an item.
fn filled(count: usize) -> Result<ObjectEnvironment, Box<dyn AnyError>> {
    let mut environment = ObjectEnvironment::default();
    for item in 0..count / MATCHES {
        let objects = (0..MATCHES).map(|number| object(item * MATCHES + number)).collect();
        environment.add(TOOL, Addition::new(objects, metadata(item)))?;
    }
    Ok(environment)
}

/// Adds one object to an item that is there, then writes what changed by that.
fn add_and_save(
    environment: &mut ObjectEnvironment,
    item: usize,
    number: usize,
) -> Result<(f64, f64), Box<dyn AnyError>> {
    let addition = Addition::new(vec![object(number)], metadata(item));
    let before = environment.changes();
    let begun = Instant::now();
    environment.add(TOOL, addition)?;
    let add = us(begun);
    let begun = Instant::now();
    let (changes, _) = environment.changes_since(before).ok_or("nothing changed")?;
    let save = us(begun);
    let items = &changes["environment"][TOOL];
    if items.as_array().map(Vec::len) != Some(1) || items[0]["objects"][0]["number"] != number {
        return Err(format!("one addition is saved as {changes}").into());
    }
    Ok((add, save))
}

fn get(environment: &ObjectEnvironment, item: usize) -> Result<f64, Box<dyn AnyError>> {
    let filter = Filter::key("page", json!(item));
    let begun = Instant::now();
    let found = environment.get_objects(TOOL, Some(&filter)).unwrap_or_default();
    let taken = us(begun);
    if black_box(found).len() != MATCHES {
        return Err("a filter does not find what is there".into());
    }
    Ok(taken)
}

fn object(number: usize) -> Object {
    map(json!({
        "number": number,
        "title": format!("the page of number {number}"),
        "author": "somebody",
    }))
}

fn metadata(item: usize) -> Object {
    map(json!({ "collection": "pages", "page": item }))
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn us(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
