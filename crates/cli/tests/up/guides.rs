//! Guides for newcomers and the pages about simulated machines, pasted from the first line to the
//! last.

use std::path::Path;

use crate::blocks::all;
use crate::placements::guide::run_through;
use crate::running::Running;
use crate::shell::{Guides, Shell};

#[test]
fn the_first_ten_minutes_print_what_they_show() {
    run_through("up/guides.rs::the_first_ten_minutes_print_what_they_show", 10);
}

#[test]
fn the_guide_to_skyhooks_prints_what_it_shows() {
    run_through("up/guides.rs::the_guide_to_skyhooks_prints_what_it_shows", 4);
}

#[test]
fn the_guide_to_the_api_server_is_pasted() {
    run_through("up/guides.rs::the_guide_to_the_api_server_is_pasted", 0);
}

#[test]
fn the_guide_to_simulated_nodes_is_pasted() {
    run_through("up/guides.rs::the_guide_to_simulated_nodes_is_pasted", 0);
}

#[test]
fn nodes_are_attached_as_the_guide_says() {
    let mut guides = Guides::of("up/guides.rs::nodes_are_attached_as_the_guide_says");
    let site = Running::start();
    let said = Shell::new(&site.kubeconfig).run(&guides.take("fleet.md", "convoy fleet"));
    assert_eq!(said, "100 simulated nodes are ready\n");
    assert_eq!(site.kubectl("get nodes -o name"), "", "they are gone with the process");
}

#[test]
fn nodes_have_rules_of_their_own_as_the_reference_says() {
    let mut guides =
        Guides::of("up/guides.rs::nodes_have_rules_of_their_own_as_the_reference_says");
    let shell = Shell::new(Path::new("/dev/null"));
    let scenario = all().into_iter().find(|block| block.page.ends_with("/scenario.md")).unwrap();
    shell.write("scenario.yaml", &scenario.body);
    shell.run("convoy up --data-dir ./cluster --scenario scenario.yaml --detach");
    shell.run("export KUBECONFIG=$PWD/cluster/admin.kubeconfig");
    shell.run(&guides.take("scenario.md", "kubectl annotate"));
}

#[test]
fn servers_for_suites_of_others_start_as_the_reference_says() {
    let mut guides =
        Guides::of("up/guides.rs::servers_for_suites_of_others_start_as_the_reference_says");
    let shell = Shell::new(Path::new("/dev/null"));
    shell.write("images.yaml", "rules: [{when: {image: a}, then: {fails: image-pull-error}}]\n");
    for page in ["karpenter-suites.md", "kubefleet-e2e.md", "ocm-suites.md"] {
        let said = shell.run(&guides.take(page, "convoy up"));
        let (_, down) = said.trim_end().rsplit_once('\n').unwrap();
        shell.run(down.strip_prefix("To stop it: ").unwrap());
    }
}
