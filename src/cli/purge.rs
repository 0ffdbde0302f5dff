//! `purge`: removes the operator's ledger, its key, and its Lease.

use http::Method;
use serde_json::{Value, json, value::RawValue};

use super::{
    CliError, Exit, Session,
    args::{ClusterArgs, PurgeArgs},
    output,
    status::render::counted,
};
use crate::{
    cluster::{self, List, WRITE_LIMIT, digest_key, ledger_object, path},
    engine::Fault,
    facts::{Name, Raw},
};

const PAGE: u16 = 100;
/// The Lease by which several replicas agree on one.
const LEASE: &str = "uptake";

/// Runs it.
///
/// # Errors
/// The rights are missing.
pub async fn run(args: &PurgeArgs) -> Result<Exit, CliError> {
    one_place(&args.cluster)?;
    let session = Session::open(&args.cluster).await?;
    let own = session.operator_namespace.clone();
    let of = |step: &str| format!("{step} Secrets in namespace {own}");
    let names = names(&session).await.map_err(|fault| CliError::of_fault(&of("list"), &fault))?;
    let (mut removed, mut failed) = (0_usize, None);
    for name in &names {
        if args.dry_run {
            output::write(&format!("secret/{name} would be removed\n"));
            continue;
        }
        match remove(&session, name).await {
            Ok(()) | Err(Fault::NotFound) => {
                removed += 1;
                output::write(&format!("secret/{name} removed\n"));
            }
            Err(fault) => {
                failed.get_or_insert(fault);
            }
        }
    }
    if !args.dry_run {
        remove_lease(&session).await;
    }
    if let Some(fault) = failed {
        output::say(&format!("error: {}", CliError::of_fault(&of("remove"), &fault)));
        return Ok(if removed > 0 { Exit::Partial } else { Exit::Failed });
    }
    if names.is_empty() {
        output::write(&format!("nothing of Uptake's is kept in namespace {own}\n"));
    } else if !args.dry_run {
        output::write(&format!("{} removed from namespace {own}\n", counted(removed, "Secret")));
    }
    Ok(Exit::Done)
}

/// Who names a namespace otherwise than it is meant here would have another one purged.
fn one_place(cluster: &ClusterArgs) -> Result<(), CliError> {
    if cluster.namespace.is_none() && !cluster.all_namespaces {
        return Ok(());
    }
    Err(CliError::usage(
        "what is purged is named by --operator-namespace; neither -n nor -A says anything here",
    ))
}

/// The ledger's objects, and the key last: without it the others mean nothing, the other way round they still do.
async fn names(session: &Session) -> Result<Vec<Name>, Fault> {
    let path = path::core(Some(&session.operator_namespace), "secrets");
    let (label, value) = ledger_object::MANAGED;
    let labels = format!("{label}={value}");
    let list =
        List { path: &path, query: &[("labelSelector", &labels)], at: None, page: PAGE, metadata_only: true };
    let each = |names: &mut Vec<Name>, item: &RawValue| {
        let object: Value = cluster::decode(item.get().as_bytes())?;
        let name = Raw(&object).name().map_err(|_| cluster::undecodable())?;
        if *name == *digest_key::NAME || name.starts_with("uptake-ledger-") {
            names.push(name);
        }
        Ok(())
    };
    let (mut names, _) = list.each(&session.api, Vec::new, each).await?;
    names.sort_by_key(|name| (**name == *digest_key::NAME, name.clone()));
    Ok(names)
}

async fn remove(session: &Session, name: &str) -> Result<(), Fault> {
    let path = format!("{}/{name}", path::core(Some(&session.operator_namespace), "secrets"));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    session.api.bytes(cluster::send(Method::DELETE, &path, &options), WRITE_LIMIT).await.map(drop)
}

/// The Lease of several replicas; it holds nothing that anybody misses, so nobody fails for it.
async fn remove_lease(session: &Session) {
    let leases = path::custom("/apis/coordination.k8s.io/v1", Some(&session.operator_namespace), "leases");
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let request = cluster::send(Method::DELETE, &format!("{leases}/{LEASE}"), &options);
    match session.api.bytes(request, WRITE_LIMIT).await {
        Ok(_) => {
            output::write(&format!("lease/{LEASE} removed\n"));
        }
        Err(Fault::NotFound) => {}
        Err(fault) => output::say(&format!("lease/{LEASE} stays: {}", cluster::words(&fault))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use rstest::rstest;

    use super::*;
    use crate::args::{Args, Command};

    #[rstest]
    #[case(&[], true)]
    #[case(&["--operator-namespace", "a"], true)]
    #[case(&["-n", "a"], false)]
    #[case(&["-A"], false)]
    #[case(&["-n", "a", "--operator-namespace", "a"], false)]
    fn no_namespace_is_purged_that_was_not_named_as_the_operators(
        #[case] flags: &[&str],
        #[case] good: bool,
    ) {
        let typed = Args::try_parse_from(["uptake", "purge"].iter().chain(flags)).unwrap();
        let Command::Purge(args) = typed.command else { unreachable!() };
        assert_eq!(one_place(&args.cluster).is_ok(), good);
    }
}
