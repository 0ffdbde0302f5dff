//! What every chapter takes.

pub(crate) use serde_json::Value;

pub(crate) use crate::{
    Result,
    node::{Node, said},
    shop::{self, show},
    stage::Stage,
    uptake,
    wait::{PATIENCE, check, until},
};
